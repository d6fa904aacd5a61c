"""Records histories: `python -m tests.histories.record NAME` writes `NAME-rulesN.jsonl`.

With `--rules N` it is recorded under older rules, and with `--model` a scripted model reads every
statement by its words; what it answered is then part of the log, and the name ends in `-model`.
A file holds the log of one conversation as canonical bytes, one event a line, and ends with the
digests it folded to. It is never written again: a change of behaviour gets a new rules version.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import orjson

from processor.app.interpret import interpret
from processor.app.tenants import read_tenants
from processor.engine.conversation import Conversation
from processor.engine.rules_version import CURRENT_RULES, KNOWN_RULES
from processor.evidence.fold import Refused, advance
from processor.scenarios import utterances
from replay.opened import opened
from schemas.utterance import Utterance
from schemas.wire import canonical_bytes, decode_log_event, decode_utterance
from tests.interpreter.scripted_endpoint import Json, Said, ScriptedEndpoint, claims, operations
from tests.interpreter.with_endpoint import standfast_at

HERE = Path(__file__).parent


def recorded(name: str, rules_version: int = CURRENT_RULES) -> bytes:
    """The history of a scenario, under the current rules if no others are named."""
    lines: list[bytes] = []
    conversation: Conversation | None = None
    tenants = HERE / "inputs" / f"{name}.tenants.jsonl"
    terms = read_tenants(tenants if tenants.exists() else None)
    for utterance in _said(name):
        if conversation is None:
            conversation = Conversation.empty(utterance.tenant_id, utterance.conversation_id)
        event = interpret(conversation, utterance, rules_version, tenants=terms)
        assert not isinstance(event, tuple), event
        assert not isinstance(advance(conversation, event), Refused)
        lines.append(canonical_bytes(event))
    assert conversation is not None
    return _history(lines, conversation)


def recorded_by_model(name: str) -> bytes:
    """The history of a scenario whose statements a scripted model has read.

    It reads what the scenario brings, but for the last statement, which it does not understand.
    """
    said = {each.text: each for each in _said(name) if each.operations is not None}
    *_, last = said

    def answer(body: Json) -> Said:
        told = body["messages"][-1]["content"].splitlines()
        words = next(line for line in reversed(told) if line.startswith('{"speaker"'))
        found = said.get(orjson.loads(words)["text"])
        if found is None:
            return claims()
        if found.text == last:
            return Said(None, refusal="No idea.")
        assert found.operations is not None
        return operations(*(each.model_dump(mode="json") for each in found.operations))

    with tempfile.TemporaryDirectory() as folder, ScriptedEndpoint(always=answer) as endpoint:
        source = Path(folder) / "said.jsonl"
        source.write_bytes(b"".join(_without_operations(name)))
        options = ("--out", folder, "--interpreter", "openai")
        done = standfast_at(endpoint, "run", source, *options)
        assert done.returncode == 0, done.stderr
        with closing(opened(Path(folder) / "standfast.duckdb")) as connection:
            rows = connection.execute("SELECT event FROM log ORDER BY sequence").fetchall()
    lines = [bytes(event) for (event,) in rows]
    return _history(lines, _folded(lines))


def _without_operations(name: str) -> Iterator[bytes]:
    for utterance in _said(name):
        plain = utterance.model_copy(update={"operations": None})
        yield orjson.dumps(plain.model_dump(mode="json", exclude_none=True)) + b"\n"


def _folded(lines: Iterable[bytes]) -> Conversation:
    events = [decode_log_event(line) for line in lines]
    conversation = Conversation.empty(events[0].tenant_id, events[0].conversation_id)
    for event in events:
        assert not isinstance(advance(conversation, event), Refused)
    return conversation


def _history(lines: list[bytes], conversation: Conversation) -> bytes:
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
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="+")
    parser.add_argument("--rules", type=int, default=CURRENT_RULES, choices=KNOWN_RULES)
    parser.add_argument("--model", action="store_true")
    given = parser.parse_args()
    for name in given.names:
        kind = "-model" if given.model else ""
        with (HERE / f"{name}-rules{given.rules}{kind}.jsonl").open("xb") as file:
            file.write(recorded_by_model(name) if given.model else recorded(name, given.rules))


if __name__ == "__main__":
    main()
