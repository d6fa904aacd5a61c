"""The sentences that go with impacts and alerts: ids and causes, never an utterance's text."""

from __future__ import annotations

from collections.abc import Sequence

from processor.engine.impact import Impact
from processor.engine.record import Record
from processor.engine.verify import Verdict
from schemas.derived import CandidateRef, Failure, Grade, VerdictReason

_NAMED_MAX = 8


def impact_message(impact: Impact) -> str:
    """What fell, through what, and what rests on it."""
    parts = [f"{impact.withdrawn} is {impact.standing} ({impact.op} by {impact.by})"]
    if impact.in_good_standing:
        parts.append(f"records in good standing that rest on it: {named(impact.in_good_standing)}")
    else:
        parts.append("nothing in good standing rests on it")
    if impact.newly_ungrounded:
        parts.append(f"newly ungrounded: {named(impact.newly_ungrounded)}")
    if impact.decisions:
        parts.append(f"decisions to look at again: {named(impact.decisions)}")
    return "; ".join(parts)


def decision_message(record: Record, verdict: Verdict) -> str:
    """Why a decision is not grounded, and which of its supports still are."""
    what = "is grounded but for its corroboration" if _is_mild(verdict) else "is not grounded"
    parts = [f"decision {record.id} {what}", *_failing(verdict)]
    sound = sorted(support.id for support in record.supports if support.grounded)
    if sound:
        parts.append(f"still sound: {named(sound)}")
    return "; ".join(parts)


def candidate_message(candidate: CandidateRef, verdict: Verdict) -> str:
    """Why a claim of a candidate is not grounded."""
    claim = f"claim {candidate.claim_index} of {candidate.utterance_id}"
    if verdict.reason is VerdictReason.NO_RECORD:
        if not candidate.records:
            return f"{claim} is not associated with any record"
        return f"{claim} names a record that does not exist: {named(candidate.records)}"
    what = "has lost corroboration" if _is_mild(verdict) else "is not grounded"
    return "; ".join([f"{claim} {what}", *_failing(verdict)])


def failure_message(failure: Failure) -> str:
    """One record that does not stand, since when, and the way to it."""
    cause = failure.cause
    through = f" by {cause.by}" if cause.by is not None else ""
    way = f", reached through {_way(failure)}" if len(failure.path) > 1 else ""
    return (
        f"{failure.record} is {failure.standing}, out of good standing since turn "
        f"{failure.since_turn} ({cause.op}{through}, {cause.speaker}){way}"
    )


def named(ids: Sequence[str]) -> str:
    """A few ids, and how many more there are."""
    more = len(ids) - _NAMED_MAX
    return ", ".join(ids[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _failing(verdict: Verdict) -> list[str]:
    return [failure_message(failure) for failure in verdict.failures.listed[:_NAMED_MAX]]


def _way(failure: Failure) -> str:
    """A support path in words; the middle of a long one is left out."""
    path = failure.path
    if len(path) <= _NAMED_MAX:
        return " -> ".join(path)
    more = len(path) - 5 + failure.path_omitted
    return f"{' -> '.join(path[:3])} -> ({more} more) -> {' -> '.join(path[-2:])}"


def _is_mild(verdict: Verdict) -> bool:
    return verdict.grade is Grade.CORROBORATION_LOST
