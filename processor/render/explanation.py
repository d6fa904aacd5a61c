"""Why a record is grounded or not, as a person would say it.

What has only lost corroboration is said more quietly than what has lost its ground.
"""

from __future__ import annotations

from collections.abc import Sequence

from processor.engine.messages import named
from processor.engine.record import Record
from processor.engine.retraction import find_record
from processor.engine.state import State
from processor.engine.verify import Verdict, verify_record
from processor.evidence.one_line import one_line
from schemas.derived import Failure, Grade, Outcome, Standing

_FAILURES_TOLD = 3


def explain_record(state: State, id_: str) -> str:
    """One sentence about a record, without its claim. Raises UnknownRecordError."""
    record = find_record(state, id_)
    return explain(record, verify_record(state, id_))


def explain(record: Record, verdict: Verdict) -> str:
    """The same with the verdict on the record at hand."""
    return one_line(_explained(record, verdict))


def _explained(record: Record, verdict: Verdict) -> str:
    what = f"{'decision' if record.is_decision else record.kind} {record.id}"
    rests = f"it rests on {named([support.id for support in record.supports])}"
    if not record.supports:
        rests = "it rests on nothing else"
    if verdict.outcome is Outcome.ABSTAIN:
        return f"{what} is in dispute, through {named(verdict.disputed)}; {rests}"
    if verdict.outcome is Outcome.GROUNDED:
        return f"{what} is grounded: {rests}"
    fell = _fell(record.id, verdict.failures.listed, verdict.failures.complete)
    if verdict.grade is Grade.CORROBORATION_LOST:
        return f"{what} keeps its ground but lost corroboration: {fell}; {rests}"
    lost = any(failure.since_turn >= record.turn for failure in verdict.failures.listed)
    return f"{what} is {'no longer' if lost else 'not'} grounded: {fell}; {rests}"


def _fell(asked: str, failures: Sequence[Failure], complete: bool) -> str:
    """What fell and when: the earliest first, as the one that people look for."""
    told = sorted(failures, key=lambda failure: (failure.since_turn, failure.record))
    parts = [_one(asked, failure) for failure in told[:_FAILURES_TOLD]]
    more = len(told) - len(parts)
    if more > 0:
        parts.append(f"{more} more records fell" if complete else f"{more} and more records fell")
    return ", ".join(parts)


def _one(asked: str, failure: Failure) -> str:
    what = "it" if failure.record == asked else failure.record
    how = "weakened" if failure.standing is Standing.WEAKENED else "withdrawn"
    return f"{what} was {how} at turn {failure.since_turn}"
