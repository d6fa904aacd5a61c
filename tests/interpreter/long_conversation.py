"""A made-up conversation of any length in which people come back to what was said long ago.

A plant is talked through: readings, guesses at causes, doubts, corrections and questions. What a
turn refers to is one of the last records without being named (half of the time), something from
long ago in other words, a record by its id, or an open question.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import orjson

from processor.app.interpret import interpret
from processor.engine.conversation import Conversation
from processor.evidence.fold import Advanced, advance
from schemas.log import LogEvent, OperationsAppended
from schemas.utterance import Utterance
from schemas.wire import decode_utterance

MACHINES = (
    *("boiler", "turbine", "chiller", "conveyor", "furnace", "separator", "compressor"),
    *("condenser", "mixer", "press", "kiln", "dryer", "filter", "tank", "crane", "grinder"),
    *("reactor", "exchanger", "blower", "feeder"),
)
TRAITS = (
    ("pressure", "bar"),
    ("temperature", "degrees"),
    ("vibration", "micrometres"),
    ("noise", "decibels"),
    ("throughput", "tonnes"),
    ("moisture", "percent"),
    ("voltage", "volts"),
    ("leakage", "litres"),
)
CHATTER = (
    "I was over there this morning.",
    "Nobody told the night shift.",
    "We ought to write this down somewhere.",
    "It is on the list for the weekend.",
    "Let me know if that is a problem.",
)


class Talk:
    """Makes up one turn after the other."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._about: dict[str, tuple[str, str]] = {}
        self._open: list[str] = []
        self._turn = 0

    def next(self) -> dict[str, Any]:
        """The text of a turn and its operations."""
        self._turn += 1
        chance = self._random.random()
        if len(self._about) < 3 or chance < 0.35:
            return self._report()
        if chance < 0.45:
            return self._ask()
        if chance < 0.55 and self._open:
            return self._answer()
        return self._refer()

    def _report(self) -> dict[str, Any]:
        machine, trait, unit, value = self._reading()
        record = self._new(machine, trait)
        claim = f"The {trait} at {machine} is {value} {unit}."
        text = f"{self._chatter()} {machine.capitalize()} shows {value} {unit} of {trait} now."
        return _said(text, {"op": "observe", "record": record, "claim": claim})

    def _ask(self) -> dict[str, Any]:
        machine, trait, _, _ = self._reading()
        question = f"q{self._turn}"
        self._about[question] = (machine, trait)
        self._open.append(question)
        text = f"Why does the {trait} at {machine} move about?"
        return _said(text, {"op": "question", "question": question, "text": text})

    def _answer(self) -> dict[str, Any]:
        question = self._open.pop(self._random.randrange(len(self._open)))
        machine, trait = self._about.pop(question)
        record = self._new(machine, trait)
        claim = f"A worn seal makes the {trait} at {machine} move."
        text = f"You asked about {machine} and its {trait}: a worn seal, I think."
        return _said(
            text, {"op": "hypothesize", "record": record, "claim": claim, "explains": [question]}
        )

    def _refer(self) -> dict[str, Any]:
        records = [id_ for id_ in self._about if not id_.startswith("q")]
        way = self._random.random()
        if way < 0.5:
            target, hint = self._random.choice(records[-8:]), "That"
        elif way < 0.9:
            target = self._random.choice(records)
            machine, trait = self._about[target]
            hint = f"What was said of the {trait} on {machine}"
        else:
            target = self._random.choice(records)
            hint = f"Point {target}"
        record = f"r{self._turn}"
        evidence = {"record": record, "claim": f"Check number {self._turn} was made by hand."}
        op = self._random.choice(("support", "undermine", "revise"))
        if op == "revise":
            del self._about[target]
            return _said(
                f"{self._chatter()} {hint} is no longer true, I checked.",
                {"op": op, "target": target, "by": evidence},
            )
        return _said(
            f"{hint} {'fits' if op == 'support' else 'does not fit'} what I found by hand.",
            {"op": op, "target": target, "evidence": evidence},
        )

    def _new(self, machine: str, trait: str) -> str:
        record = f"r{self._turn}"
        self._about[record] = (machine, trait)
        return record

    def _reading(self) -> tuple[str, str, str, int]:
        trait, unit = self._random.choice(TRAITS)
        machine = f"{self._random.choice(MACHINES)} {self._random.randrange(1, 41)}"
        return machine, trait, unit, self._random.randrange(1, 900)

    def _chatter(self) -> str:
        return self._random.choice(CHATTER)


def long_conversation(turns: int, seed: int = 7) -> Iterator[tuple[Conversation, Utterance]]:
    """The conversation as it is before each turn, and the turn; then the turn is folded."""
    talk = Talk(seed)
    conversation = Conversation.empty("default", "plant")
    for number in range(1, turns + 1):
        line = {
            "conversation_id": "plant",
            "utterance_id": f"u{number}",
            "speaker": ("ann", "ben", "eva")[number % 3],
            "at": "2026-03-01T02:31:00Z",
            **talk.next(),
        }
        utterance = decode_utterance(orjson.dumps(line))
        yield conversation, utterance
        fold_in(conversation, utterance)


def fold_in(conversation: Conversation, utterance: Utterance) -> LogEvent:
    """Append the utterance with the operations it brings."""
    event = interpret(conversation, utterance)
    assert not isinstance(event, tuple), event
    assert isinstance(advance(conversation, event), Advanced)
    return event


def references(conversation: Conversation, utterance: Utterance) -> list[str]:
    """The ids that the operations of an utterance cite and that exist before it, each once."""
    event = interpret(conversation, utterance)
    assert isinstance(event, OperationsAppended)
    cited: dict[str, None] = {}
    for operation in event.operations:
        _collect(operation.model_dump(), cited)
    return [id_ for id_ in cited if conversation.state.is_taken(id_)]


_CITING = ("premises", "explains", "target", "evidence", "by", "subsumes", "answers", "about")


def _collect(value: dict[str, Any], cited: dict[str, None]) -> None:
    for name in (*_CITING, "reclassifies", "decision"):
        found = value.get(name) or ()
        for each in found if isinstance(found, (list, tuple)) else (found,):
            if isinstance(each, dict):
                _collect(each, cited)
            else:
                cited[each] = None


def _said(text: str, *operations: dict[str, Any]) -> dict[str, Any]:
    return {"text": text, "operations": list(operations)}
