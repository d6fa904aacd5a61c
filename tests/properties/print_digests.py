"""Fold the utterances on standard input and print what must not vary, one line per conversation.

Run as a program by `test_determinism.py`, under different hash seeds.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable

import orjson

from schemas.wire import canonical_bytes
from tests.oracles.naive_map import Json
from tests.properties.engine_driver import EngineDriver, Key


def lines(stream: Iterable[Json]) -> list[str]:
    """Digest of the log, of the state, and of all derived events, by conversation."""
    driver = EngineDriver()
    derived: dict[Key, list[bytes]] = {}
    for utterance in stream:
        for event in driver.fold(utterance):
            key = (event.tenant_id, event.conversation_id)
            derived.setdefault(key, []).append(canonical_bytes(event))
    return [
        f"{key} {digest} {state_digest} {hashlib.sha256(b''.join(derived[key])).hexdigest()}"
        for key, (digest, state_digest) in sorted(driver.digests().items())
    ]


if __name__ == "__main__":
    print("\n".join(lines(map(orjson.loads, sys.stdin.buffer))))
