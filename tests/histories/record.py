"""Records histories: `python -m tests.histories.record NAME` writes `NAME-rulesN.jsonl`.

A file holds the log of one conversation as canonical bytes, one event a line, and ends with the
digests it folded to. It is never written again: a change of behaviour gets a new rules version.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import orjson

from processor.app.interpret import interpret
from processor.app.tenants import read_tenants
from processor.engine.conversation import Conversation
from processor.engine.rules_version import CURRENT_RULES
from processor.evidence.fold import Refused, advance
from processor.scenarios import utterances
from schemas.utterance import Utterance
from schemas.wire import canonical_bytes, decode_utterance

HERE = Path(__file__).parent


def recorded(name: str) -> bytes:
    """The history of a scenario under the current rules."""
    lines: list[bytes] = []
    conversation: Conversation | None = None
    tenants = HERE / "inputs" / f"{name}.tenants.jsonl"
    terms = read_tenants(tenants if tenants.exists() else None)
    for utterance in _said(name):
        if conversation is None:
            conversation = Conversation.empty(utterance.tenant_id, utterance.conversation_id)
        event = interpret(conversation, utterance, tenants=terms)
        assert not isinstance(event, tuple), event
        assert not isinstance(advance(conversation, event), Refused)
        lines.append(canonical_bytes(event))
    assert conversation is not None
    folded_to = {"digest": conversation.digest, "state_digest": conversation.state_digest()}
    return b"\n".join([*lines, orjson.dumps(folded_to), b""])


def _said(name: str) -> Iterable[Utterance]:
    """A scenario, or a conversation that is there for its history alone."""
    own = HERE / "inputs" / f"{name}.jsonl"
    if own.exists():
        return map(decode_utterance, own.read_bytes().splitlines())
    return utterances(name)


def main() -> None:
    """Write the histories of the scenarios named on the command line; refuse to overwrite one."""
    for name in sys.argv[1:]:
        with (HERE / f"{name}-rules{CURRENT_RULES}.jsonl").open("xb") as file:
            file.write(recorded(name))


if __name__ == "__main__":
    main()
