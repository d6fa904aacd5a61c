"""The loop around an interpreter: what is asked again, what stands, and what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from processor.interpreter.loop import (
    ANSWERS_CHARS_MAX,
    add_costs,
    read_until_it_stands,
    what_stands,
)
from processor.interpreter.port import Interpreted, Reading, Refused, Unreadable
from schemas.log import ANSWER_CHARS_MAX, CALLS_MAX, Interpretation, ModelCall, Rejection
from schemas.log import RejectionCode as Code
from schemas.operations import Operation, Question

CALL = ModelCall(request="a" * 64, answer="{}", tokens_in=10, tokens_out=2, milliseconds=5)


def cost(*invalid: Rejection) -> Interpretation:
    """What one call costs."""
    return Interpretation(
        interpreter="openai",
        attempts=1,
        tokens_in=10,
        tokens_out=2,
        milliseconds=5,
        rejections=invalid,
        calls=(CALL,),
    )


def questions(*ids: str) -> tuple[Operation, ...]:
    """An operation for each id."""
    return tuple(Question(op="question", question=each) for each in ids)


def invalid(index: int) -> Rejection:
    """What is no operation."""
    return Rejection(index=index, code=Code.INVALID_OPERATION, reason="op: missing")


def taken(reading: Reading) -> tuple[Rejection, ...]:
    """A state that has the id `taken` already."""
    return tuple(
        Rejection(index=index, code=Code.DUPLICATE_RECORD, reason="exists already")
        for index, operation in enumerate(reading.operations)
        if isinstance(operation, Question) and operation.question == "taken"
    )


def asked(*answers: Interpreted) -> tuple[Interpreted, Sequence[Refused | None]]:
    """What comes of these answers, and what was asked."""
    left, told = list(answers), []

    async def ask(refused: Refused | None) -> Interpreted:
        told.append(refused)
        return left.pop(0)

    return asyncio.run(read_until_it_stands(ask, taken)), told


def test_a_reading_that_stands_is_asked_for_once() -> None:
    """It comes back as it is."""
    reading = Reading(cost(), questions("q1"))
    assert asked(reading) == (reading, [None])


def test_what_is_refused_or_invalid_is_asked_again() -> None:
    """Also an operation that is none: its reason is in the provenance of what is handed back."""
    for first in (Reading(cost(), questions("taken")), Reading(cost(invalid(0)), questions("q"))):
        last, told = asked(first, Reading(cost(), questions("q2")))
        assert isinstance(last, Reading)
        assert last.operations == questions("q2")
        assert told[1] == Refused(first, taken(first))
        provenance = last.provenance
        assert (provenance.attempts, provenance.tokens_in, len(provenance.calls)) == (2, 20, 2)


def test_tries_are_bounded() -> None:
    """After the third the last reading is kept; one that repeats itself ends it sooner."""
    last, told = asked(*(Reading(cost(), questions("taken", each)) for each in "abc"))
    assert isinstance(last, Reading)
    assert (last.operations, len(told)) == (questions("taken", "c"), 3)
    same = Reading(cost(), questions("taken"))
    assert len(asked(same, same)[1]) == 2


def test_a_later_failure_undoes_no_reading() -> None:
    """What stood before stands, and both are paid for; a first failure is one."""
    failed = Unreadable(cost(), "empty")
    last, _ = asked(Reading(cost(), questions("taken", "q1")), failed)
    assert isinstance(last, Reading)
    assert last.operations == questions("taken", "q1")
    assert last.provenance.attempts == 2
    assert asked(failed) == (failed, [None])


def test_an_answer_that_leaves_everything_out_undoes_no_reading() -> None:
    """What stood before stands, and what was refused is told, rather than "no operations"."""
    first = Reading(cost(), questions("taken", "q1"))
    last, told = asked(first, Reading(cost()), Reading(cost(), questions("q2")))
    assert isinstance(last, Reading)
    assert (last.operations, last.provenance.attempts, len(told)) == (first.operations, 2, 2)
    kept = what_stands(last, taken(last))
    assert kept.operations == questions("q1")
    assert [each.code for each in kept.provenance.rejections] == [Code.DUPLICATE_RECORD]
    assert asked(Reading(cost())) == (Reading(cost()), [None])


def test_what_is_refused_is_noted_by_its_place_in_what_was_given() -> None:
    """The invalid and the refused together, in their order; the rest is kept."""
    reading = Reading(cost(invalid(0), invalid(2)), questions("q1", "taken", "q2"))
    kept = what_stands(reading, taken(reading))
    assert kept.operations == questions("q1", "q2")
    noted = [(each.index, each.code) for each in kept.provenance.rejections]
    assert noted == [
        (0, Code.INVALID_OPERATION),
        (2, Code.INVALID_OPERATION),
        (3, Code.DUPLICATE_RECORD),
    ]


def test_an_event_keeps_a_bounded_number_of_answers() -> None:
    """The costs are those of all calls; answers beyond the room are left out, and late calls."""
    long = CALL.model_copy(update={"answer": "x" * ANSWER_CHARS_MAX})
    costs = [cost().model_copy(update={"calls": (long,)})] * (CALLS_MAX + 8)
    together = add_costs(costs, costs[-1])
    assert together.attempts == CALLS_MAX + 8
    assert len(together.calls) == CALLS_MAX
    kept = [call for call in together.calls if call.answer is not None]
    assert sum(len(call.answer or "") for call in kept) == ANSWERS_CHARS_MAX
