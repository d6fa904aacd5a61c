"""The runtime check (section 2, Lemma 2.1): does a claim rest on records that all stand?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from processor.engine.errors import UnknownRecordError
from processor.engine.failing import (
    NO_FAILURES,
    Failures,
    equal_share,
    failures,
    failures_of_each,
)
from processor.engine.record import LinkKind, Record
from processor.engine.state import State
from schemas.derived import FAILURES_MAX, SUPPORT_MAX, Grade, Outcome, VerdictReason


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a check.

    `support` is the exact dependency closure on acceptance (outcome grounded or abstain), else
    empty; its first ids where `support_complete` is false. `failures` are the records of the
    closure that do not stand.
    """

    outcome: Outcome
    grade: Grade | None
    support: tuple[str, ...] = ()
    support_complete: bool = True
    failures: Failures = NO_FAILURES
    reason: VerdictReason | None = None
    disputed: tuple[str, ...] = ()


def is_grounded(record: Record) -> bool:
    """The strict answer in constant time."""
    return record.grounded


def grade(record: Record) -> Grade:
    """The graded answer in constant time."""
    if record.grounded:
        return Grade.GROUNDED
    return Grade.CORROBORATION_LOST if record.core_grounded else Grade.UNGROUNDED


def verify(
    state: State, ids: Sequence[str], most: int = FAILURES_MAX, support_most: int = SUPPORT_MAX
) -> Verdict:
    """Check a claim that rests on these records: grounded iff every one of them is.

    An unknown id, or no id at all, is ungrounded for want of a record; what is wrong with the known
    ones is said all the same. `most` bounds the failing records that are told, `support_most` the
    support.
    """
    records = [state.records.get(id_) for id_ in ids]
    known = [record for record in records if record is not None]
    if not known or len(known) < len(records):
        return Verdict(
            Outcome.UNGROUNDED,
            Grade.UNGROUNDED,
            failures=failures(known, most),
            reason=VerdictReason.NO_RECORD,
        )
    if not all(record.grounded for record in known):
        return _ungrounded(known, failures(known, most))
    if support_most == 0 and not state.disputed:
        return Verdict(Outcome.GROUNDED, Grade.GROUNDED, support_complete=False)
    support = tuple(sorted(closure(known)))
    disputed = tuple(id_ for id_ in support if id_ in state.disputed) if state.disputed else ()
    return Verdict(
        Outcome.ABSTAIN if disputed else Outcome.GROUNDED,
        Grade.GROUNDED,
        support=support[:support_most],
        support_complete=len(support) <= support_most,
        reason=VerdictReason.DISPUTED if disputed else None,
        disputed=disputed[: max(1, support_most)],
    )


def verify_claims(state: State, claims: Sequence[Sequence[str]]) -> tuple[Verdict, ...]:
    """Check the claims of one candidate; together they tell at most SUPPORT_MAX ids of support."""
    most, left = equal_share(len(claims)), SUPPORT_MAX
    verdicts: list[Verdict] = []
    for ids in claims:
        verdicts.append(verify(state, ids, most, left))
        left = max(0, left - len(verdicts[-1].support) - len(verdicts[-1].disputed))
    return tuple(verdicts)


def verify_fallen(state: State, ids: Sequence[str]) -> dict[str, Verdict]:
    """The verdicts on the ungrounded decisions of one turn, by id, from a walk that they share."""
    records = [state.records[id_] for id_ in ids]
    found = failures_of_each(records, equal_share(len(records)))
    return {
        record.id: _ungrounded([record], failing)
        for record, failing in zip(records, found, strict=True)
    }


def verify_record(state: State, id_: str) -> Verdict:
    """Check one record of the map. Raises UnknownRecordError."""
    if id_ not in state.records:
        raise UnknownRecordError(id_)
    return verify(state, (id_,))


def _ungrounded(claim: Sequence[Record], failing: Failures) -> Verdict:
    core = all(record.core_grounded for record in claim)
    return Verdict(
        Outcome.UNGROUNDED,
        Grade.CORROBORATION_LOST if core else Grade.UNGROUNDED,
        failures=failing,
        reason=VerdictReason.WITHDRAWN_SUPPORT,
    )


def closure(starts: Sequence[Record]) -> dict[str, Record]:
    """Dep*: every record reachable over support links, the starts included, by id."""
    reached = {record.id: record for record in starts}
    pending = list(starts)
    while pending:
        for support in pending.pop().supports:
            if support.id not in reached:
                reached[support.id] = support
                pending.append(support)
    return reached


def walk_is_grounded(record: Record) -> bool:
    """The plain walk that `Record.grounded` stands for."""
    return all(reached.stands for reached in closure([record]).values())


def walk_is_core_grounded(record: Record) -> bool:
    """The plain walk over premise and subsumption links, for which `core_grounded` stands."""
    reached = {record.id}
    pending = [record]
    while pending:
        current = pending.pop()
        if not current.stands:
            return False
        for support, kind in current.links():
            if kind is not LinkKind.CORROBORATION and support.id not in reached:
                reached.add(support.id)
                pending.append(support)
    return True
