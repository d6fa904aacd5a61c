"""The interpret agent in front of a log in memory: races, endpoints that fail, turns that fail."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest

from processor.app import interpret_agent, utterance_reader
from processor.app.interpret import DeadLetterClass, Unusable
from processor.app.interpret_agent import EventTooLarge, InterpretAgent
from processor.app.messages import Delivered
from processor.engine.conversation import Conversation
from processor.evidence.fold import advance
from processor.interpreter.port import (
    EndpointUnavailable,
    Interpreted,
    Reading,
    Refused,
    Unreadable,
)
from schemas.log import Interpretation, LogEvent
from schemas.utterance import Utterance
from schemas.wire import canonical_bytes, decode_utterance

MODEL = Interpretation(interpreter="scripted", attempts=1)


def line(utterance_id: str, *operations: dict[str, Any], **fields: Any) -> bytes:
    """One utterance; without operations it is text that must be read."""
    said: dict[str, Any] = {
        "conversation_id": "c",
        "utterance_id": utterance_id,
        "speaker": "ann",
        "text": "something",
        "at": "2026-03-01T02:31:00Z",
        **fields,
    }
    if operations:
        said["operations"] = operations
    return orjson.dumps(said)


def observe(record: str, *premises: str) -> dict[str, Any]:
    """An observation."""
    return {"op": "observe", "record": record, "claim": record, "premises": premises}


def operations(*brought: dict[str, Any]) -> tuple[Any, ...]:
    """Operations as an interpreter gives them."""
    read = decode_utterance(line("x", *brought)).operations
    assert read is not None
    return read


class MemoryLog:
    """Folds what is appended at once; `first` is appended by somebody else before the first."""

    def __init__(self, first: Callable[[Conversation], LogEvent] | None = None) -> None:
        self.folded_to = Conversation.empty("default", "c")
        self.appended = 0
        self._first = first
        self.letters: list[tuple[Unusable, int]] = []

    def partition_of(self, key: bytes) -> int:
        """There is one partition."""
        return 0

    async def conversation(self, partition: int, tenant: str, conversation: str) -> Conversation:
        """There is one conversation."""
        return self.folded_to

    async def append(self, partition: int, event: LogEvent) -> int:
        """Fold at once, unless another writer was quicker."""
        if self._first is not None:
            first, self._first = self._first, None
            advance(self.folded_to, first(self.folded_to))
        advance(self.folded_to, event)
        self.appended += 1
        return self.appended

    async def folded(self, partition: int, offset: int) -> None:
        """It was folded at once."""

    async def write(self, message: Delivered, letter: Unusable, attempts: int) -> None:
        """Keep the letter."""
        self.letters.append((letter, attempts))


class Scripted:
    """An interpreter that gives these answers one after the other, and notes what it was asked."""

    def __init__(self, *answers: Interpreted | EndpointUnavailable) -> None:
        self._answers = list(answers)
        self.asked: list[Refused | None] = []

    async def interpret(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """The next answer."""
        self.asked.append(refused)
        answer = self._answers.pop(0)
        if isinstance(answer, EndpointUnavailable):
            raise answer
        return answer


def handle(log: MemoryLog, interpreter: Scripted | None, *lines: bytes, **options: Any) -> None:
    """Handle these utterances one after the other."""
    agent = InterpretAgent(log=log, dead_letters=log, interpreter=interpreter, **options)

    async def main() -> None:
        for offset, value in enumerate(lines):
            await agent.handle(Delivered("utterances", 0, offset, b"default/c", value))

    asyncio.run(main())


def records(log: MemoryLog) -> Sequence[str]:
    """The records of the conversation."""
    return list(log.folded_to.state.records)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses are short."""
    monkeypatch.setattr(utterance_reader, "PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(utterance_reader, "PAUSE_MAX_S", 0.002)


def test_an_utterance_that_comes_again_is_not_read_again() -> None:
    """Delivered twice, appended once, and the interpreter asked once."""
    log, model = MemoryLog(), Scripted(Reading(MODEL, operations(observe("o1"))))
    handle(log, model, line("u1"), line("u1"))
    assert (records(log), log.appended, len(model.asked), log.letters) == (["o1"], 1, 1, [])


def test_a_sequence_number_that_was_taken_costs_no_second_call() -> None:
    """What was read is appended again behind the event of the other writer."""

    def other(conversation: Conversation) -> LogEvent:
        event = interpret_agent.interpret(conversation, decode_utterance(line("v", observe("o0"))))
        assert not isinstance(event, tuple)
        return event

    log, model = MemoryLog(other), Scripted(Reading(MODEL, operations(observe("o1"))))
    handle(log, model, line("u1"))
    assert records(log) == ["o0", "o1"]
    assert (log.appended, len(model.asked)) == (2, 1)


def test_what_the_state_refuses_is_asked_again_with_the_reasons() -> None:
    """The interpreter sees its reading and why parts of it were refused, and may mend it."""
    wrong = Reading(MODEL, operations(observe("o1", "unknown")))
    log, model = MemoryLog(), Scripted(wrong, Reading(MODEL, operations(observe("o1"))))
    handle(log, model, line("u1"))
    assert records(log) == ["o1"]
    assert model.asked[0] is None
    refused = model.asked[1]
    assert refused is not None
    assert refused.reading == wrong
    assert [each.code for each in refused.rejections] == ["unknown_reference"]


def test_an_endpoint_that_is_down_fails_no_turn() -> None:
    """Calls wait and are made again; readiness is told both ways."""
    down = EndpointUnavailable("no connection")
    told: list[bool] = []
    log = MemoryLog()
    model = Scripted(down, down, down, Reading(MODEL, operations(observe("o1"))))
    handle(log, model, line("u1"), on_endpoint=told.append)
    assert records(log) == ["o1"]
    assert told == [False, False, False, True]
    assert log.letters == []


def test_patience_with_an_endpoint_ends() -> None:
    """After the outage patience the turn fails, and the original is a dead letter."""
    model = Scripted(*[EndpointUnavailable("no connection")] * 50)
    log = MemoryLog()
    handle(log, model, line("u1"), outage_patience_s=0.01)
    assert log.folded_to.missing == {1: "u1"}
    assert log.letters == [
        (Unusable(DeadLetterClass.NOT_INTERPRETED, "", "no connection"), 0),
    ]


def test_an_endpoint_is_left_alone_as_long_as_it_asks_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Chance makes no pause shorter than that, but it never outlasts the patience."""
    monkeypatch.setattr(utterance_reader.random, "uniform", lambda low, high: low)
    started = time.monotonic()
    model = Scripted(EndpointUnavailable("busy", 0.4), Reading(MODEL, operations(observe("o1"))))
    handle(MemoryLog(), model, line("u1"))
    assert time.monotonic() - started >= 0.4
    log, model = MemoryLog(), Scripted(*[EndpointUnavailable("away", 1e9)] * 50)
    handle(log, model, line("u1"), outage_patience_s=0.1)
    assert log.folded_to.missing == {1: "u1"}


def test_patience_counts_the_time_of_the_calls() -> None:
    """An endpoint on which every call runs into its deadline is not waited for any longer."""

    class Hanging(Scripted):
        async def interpret(
            self, conversation: Conversation, utterance: Utterance, refused: Refused | None
        ) -> Interpreted:
            await asyncio.sleep(0.2)
            return await super().interpret(conversation, utterance, refused)

    log, model = MemoryLog(), Hanging(*[EndpointUnavailable("no answer within 0.2 s")] * 50)
    handle(log, model, line("u1"), outage_patience_s=0.15)
    assert (len(model.asked), log.folded_to.missing) == (2, {1: "u1"})


def test_a_reading_that_the_log_does_not_take_fails_its_turn() -> None:
    """Later verdicts then say that a turn is missing; operations of its own are a dead letter."""

    class Narrow(MemoryLog):
        async def append(self, partition: int, event: LogEvent) -> int:
            if len(canonical_bytes(event)) > 2_000:
                raise EventTooLarge("2,000 bytes")
            return await super().append(partition, event)

    long = {**observe("o1"), "claim": "x" * 4_000}
    log, model = Narrow(), Scripted(Reading(MODEL, operations(long)))
    handle(log, model, line("u1"), line("u2", long))
    assert (log.folded_to.missing, len(model.asked)) == ({1: "u1"}, 1)
    reason = "what was read is too long: 2,000 bytes"
    assert log.letters == [
        (Unusable(DeadLetterClass.NOT_INTERPRETED, "", reason), 1),
        (Unusable(DeadLetterClass.TOO_LONG, "", "2,000 bytes"), 0),
    ]


def test_an_utterance_that_cannot_be_read_fails_its_turn() -> None:
    """It takes a turn, the original is a dead letter, and work goes on; also if it comes again."""
    log, model = MemoryLog(), Scripted(Unreadable(MODEL, "no operations in it"))
    handle(log, model, line("u1"), line("u2", observe("o1")), line("u1"))
    assert log.folded_to.missing == {1: "u1"}
    assert records(log) == ["o1"]
    letter = Unusable(DeadLetterClass.NOT_INTERPRETED, "", "no operations in it")
    assert log.letters[0] == (letter, 1)
    assert [each.dead_letter_class for each, _ in log.letters] == ["not_interpreted"] * 2


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (b"default/c", None, DeadLetterClass.INVALID),
        (b"default/c", b"\xff", DeadLetterClass.INVALID),
        (b"default/d", line("u", observe("o")), DeadLetterClass.WRONG_KEY),
        (None, line("u", observe("o")), DeadLetterClass.WRONG_KEY),
    ],
)
def test_what_is_no_utterance_of_its_conversation(
    key: bytes | None, value: bytes | None, expected: DeadLetterClass
) -> None:
    """Bytes and keys that do not fit are dead letters and reach no conversation."""
    log = MemoryLog()
    agent = InterpretAgent(log=log, dead_letters=log)
    asyncio.run(agent.handle(Delivered("utterances", 0, 0, key, value)))
    assert [letter.dead_letter_class for letter, _ in log.letters] == [expected]
    assert log.appended == 0


def test_an_id_that_comes_again_with_other_words_is_a_dead_letter() -> None:
    """The first one counts."""
    log = MemoryLog()
    handle(log, None, line("u1", observe("o1")), line("u1", observe("o2")))
    assert records(log) == ["o1"]
    assert [letter.dead_letter_class for letter, _ in log.letters] == ["id_reused"]
