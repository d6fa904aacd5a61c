"""The runtime check (section 2, Lemma 2.1): does a claim rest on records that all stand?"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from processor.engine.errors import UnknownRecordError
from processor.engine.record import Happening, LinkKind, Record
from processor.engine.state import State
from schemas.derived import Cause, Failure, Grade, Outcome, VerdictReason


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a check.

    `support` is the exact dependency closure on acceptance (outcome grounded or abstain), else
    empty. `failures` are the records of the closure that do not stand, by id.
    """

    outcome: Outcome
    grade: Grade | None
    support: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
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


def verify(state: State, ids: Sequence[str]) -> Verdict:
    """Check a claim that rests on these records: grounded iff every one of them is.

    An unknown id, or no id at all, is ungrounded for want of a record; what is wrong with the known
    ones is said all the same.
    """
    records = [state.records.get(id_) for id_ in ids]
    known = [record for record in records if record is not None]
    if not known or len(known) < len(records):
        return Verdict(
            Outcome.UNGROUNDED,
            Grade.UNGROUNDED,
            failures=failures(known),
            reason=VerdictReason.NO_RECORD,
        )
    if not all(record.grounded for record in known):
        core = all(record.core_grounded for record in known)
        return Verdict(
            Outcome.UNGROUNDED,
            Grade.CORROBORATION_LOST if core else Grade.UNGROUNDED,
            failures=failures(known),
            reason=VerdictReason.WITHDRAWN_SUPPORT,
        )
    support = tuple(sorted(closure(known)))
    disputed = tuple(id_ for id_ in support if id_ in state.disputed) if state.disputed else ()
    if disputed:
        return Verdict(
            Outcome.ABSTAIN,
            Grade.GROUNDED,
            support=support,
            reason=VerdictReason.DISPUTED,
            disputed=disputed,
        )
    return Verdict(Outcome.GROUNDED, Grade.GROUNDED, support=support)


def verify_record(state: State, id_: str) -> Verdict:
    """Check one record of the map. Raises UnknownRecordError."""
    if id_ not in state.records:
        raise UnknownRecordError(id_)
    return verify(state, (id_,))


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


def failures(starts: Sequence[Record]) -> tuple[Failure, ...]:
    """Every record of the closure that does not stand, by id, each with a shortest path to it.

    Of several shortest paths it is the one whose ids come first: breadth first, with the records
    of a level in the order of their paths and their supports by id, meets that one first.
    """
    paths: dict[str, tuple[str, ...]] = {}
    failing: list[Record] = []
    queue: deque[tuple[Record, tuple[str, ...]]] = deque(
        (record, (record.id,)) for record in sorted(starts, key=_by_id)
    )
    while queue:
        record, path = queue.popleft()
        if record.id in paths:
            continue
        paths[record.id] = path
        if not record.stands:
            failing.append(record)
        for support in sorted(record.supports, key=_by_id):
            if support.id not in paths:
                queue.append((support, (*path, support.id)))
    return tuple(_failure(record, paths[record.id]) for record in sorted(failing, key=_by_id))


def _failure(record: Record, path: tuple[str, ...]) -> Failure:
    """When and through whom the record first left good standing."""
    fall = next(entry for entry in record.happened(Happening.STANDING) if entry.value != "resolved")
    return Failure(
        record=record.id,
        standing=record.standing,
        since_turn=fall.turn,
        cause=Cause(op=fall.op, by=fall.by, speaker=fall.speaker),
        path=path,
    )


def _by_id(record: Record) -> str:
    return record.id
