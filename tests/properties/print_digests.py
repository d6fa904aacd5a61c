"""Print one line per conversation of some fixed streams: everything that must not vary.

Run as a program by `test_determinism.py`, under different hash seeds.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict

from schemas.wire import canonical_bytes
from tests.properties.engine_driver import EngineDriver, Key
from tests.strategies_streams import seeded_stream

SEEDS = range(3)
LENGTH = 60


def lines() -> list[str]:
    """Digest of the log, of the state, and of all derived events, by stream and conversation."""
    found = []
    for seed in SEEDS:
        driver = EngineDriver()
        derived: dict[Key, hashlib._Hash] = defaultdict(hashlib.sha256)
        for utterance in seeded_stream(seed, LENGTH):
            for event in driver.fold(utterance):
                key = (event.tenant_id, event.conversation_id)
                derived[key].update(canonical_bytes(event))
        found += [
            f"{seed} {key} {digest} {state_digest} {derived[key].hexdigest()}"
            for key, (digest, state_digest) in sorted(driver.digests().items())
        ]
    return found


if __name__ == "__main__":
    print("\n".join(lines()))
