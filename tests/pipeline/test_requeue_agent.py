"""A dead letter that is delivered again fills the place of its missing turn, once."""

from __future__ import annotations

import asyncio

from processor.app.interpret import interpret
from processor.app.interpret_agent import InterpretAgent
from processor.app.messages import Delivered
from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused as FoldRefused
from processor.evidence.fold import advance, fold
from processor.interpreter.port import Reading, Unreadable
from schemas.derived import Coverage, VerdictEvent
from schemas.log import LogEvent
from schemas.wire import canonical_bytes, decode_log_event, decode_utterance
from tests.pipeline.test_interpret_agent import (
    MODEL,
    MemoryLog,
    Scripted,
    handle,
    line,
    observe,
    operations,
    records,
)

CANDIDATE = {"kind": "candidate", "claims": [{"record": "o2"}]}


class KeptLog(MemoryLog):
    """Keeps what it folds, and what comes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[LogEvent] = []
        self.coverage: list[Coverage] = []

    async def append(self, partition: int, event: LogEvent) -> int:
        """Fold at once."""
        folded = fold(self.folded_to, event)
        if not isinstance(folded, FoldRefused):
            derived = folded.events
            self.coverage += [each.coverage for each in derived if isinstance(each, VerdictEvent)]
        self.events.append(event)
        return len(self.events)


REQUEUED = (("requeued", b"0/7"),)


def requeue(log: MemoryLog, model: Scripted | None, value: bytes) -> None:
    """Deliver an utterance as `dead-letters requeue` sends it."""
    agent = InterpretAgent(log=log, dead_letters=log, interpreter=model)
    asyncio.run(agent.handle(Delivered("utterances", 0, 99, b"default/c", value, REQUEUED)))


def failed_first() -> KeptLog:
    """A log whose first turn is missing, with one more turn and a draft after it."""
    log = KeptLog()
    model = Scripted(Unreadable(MODEL, "no operations in it"))
    handle(log, model, line("u1"), line("u2", observe("o2")), line("d1", **CANDIDATE))
    assert log.folded_to.missing == {1: "u1"}
    return log


def test_a_requeued_utterance_fills_its_missing_turn() -> None:
    """It takes a new turn that fills the old one, and coverage is complete from then on."""
    log = failed_first()
    requeue(log, Scripted(Reading(MODEL, operations(observe("o1")))), line("u1"))
    handle(log, None, line("d2", **CANDIDATE))
    assert log.folded_to.missing == {}
    assert (records(log), log.folded_to.turn) == (["o2", "o1"], 3)
    assert [each.complete for each in log.coverage] == [False, True]
    filled = log.events[-2]
    assert (filled.type, filled.turn, filled.fills_turn) == ("standfast.operations.v1", 3, 1)


def test_a_fill_is_folded_the_same_by_everybody() -> None:
    """Another reader of the same bytes comes to the same digests."""
    log = failed_first()
    requeue(log, Scripted(Reading(MODEL, operations(observe("o1", "o2")))), line("u1"))
    other = Conversation.empty("default", "c")
    for event in log.events:
        advance(other, decode_log_event(canonical_bytes(event)))
    assert other.digest == log.folded_to.digest
    assert other.state_digest() == log.folded_to.state_digest()
    assert other.coverage() == log.folded_to.coverage()


def test_what_the_present_state_refuses_of_a_fill_is_asked_again() -> None:
    """A fill is checked against the state as it is now, and mended like any reading."""
    log = failed_first()
    wrong = Reading(MODEL, operations(observe("o2")))
    model = Scripted(wrong, Reading(MODEL, operations(observe("o1"))))
    requeue(log, model, line("u1"))
    refused = model.asked[1]
    assert refused is not None
    assert [each.code for each in refused.rejections] == ["duplicate_record"]
    assert records(log) == ["o2", "o1"]


def test_requeued_twice_it_is_found_filled() -> None:
    """The second asks no model, appends nothing and writes no letter; nor does a plain repeat."""
    log = failed_first()
    model = Scripted(Reading(MODEL, operations(observe("o1"))))
    letters = len(log.letters)
    requeue(log, model, line("u1"))
    before = (log.folded_to.digest, len(log.events))
    requeue(log, model, line("u1"))
    handle(log, model, line("u1"))
    assert (log.folded_to.digest, len(log.events)) == before
    assert (len(model.asked), len(log.letters)) == (1, letters)


def test_still_unreadable_it_is_a_dead_letter_again() -> None:
    """The log stays as it is: the turn is missing already, and the letter has the new reason."""
    log = failed_first()
    before = log.folded_to.digest
    requeue(log, Scripted(Unreadable(MODEL, "still nothing")), line("u1"))
    assert (log.folded_to.digest, log.folded_to.missing) == (before, {1: "u1"})
    assert log.letters[-1][0].problem == "still nothing"
    requeue(log, None, line("u1"))
    assert [each.dead_letter_class for each, _ in log.letters] == ["not_interpreted"] * 3


def test_other_words_under_the_id_of_a_missing_turn_fill_nothing() -> None:
    """They are a reused id, and no model is asked about them."""
    log, model = failed_first(), Scripted()
    requeue(log, model, line("u1", text="something else"))
    assert log.letters[-1][0].dead_letter_class == "id_reused"
    assert (log.folded_to.missing, model.asked) == ({1: "u1"}, [])


def test_a_letter_that_left_no_turn_is_interpreted_as_if_it_came_first() -> None:
    """What never reached the log, as from a wrong partition, is an ordinary utterance."""
    log = failed_first()
    requeue(log, None, line("u9", observe("o9")))
    assert records(log) == ["o2", "o9"]
    assert log.events[-1].fills_turn is None


def test_two_requeues_race_and_one_fills() -> None:
    """Whoever is late finds the turn filled, and its reading is not appended."""
    log = failed_first()
    reading = Reading(MODEL, operations(observe("o1")))

    def other(conversation: Conversation) -> LogEvent:
        utterance = decode_utterance(line("u1"))
        event = interpret(conversation, utterance, reading=reading, fills_turn=1)
        assert not isinstance(event, tuple)
        return event

    raced = MemoryLog(other)
    raced.folded_to = log.folded_to
    requeue(raced, Scripted(reading), line("u1"))
    assert (raced.appended, records(raced), raced.folded_to.missing) == (1, ["o2", "o1"], {})
    assert raced.letters == []
