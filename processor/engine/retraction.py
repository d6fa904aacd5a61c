"""What rests on a record: Affected, Affected* and the support tree (Definition 2.3).

The queries report and change nothing, so they serve an actual withdrawal and an imagined one alike.
Their cost grows with what is affected, not with the conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

from processor.engine.errors import UnknownRecordError
from processor.engine.record import LinkKind, Record
from processor.engine.state import State


@final
class Affected(NamedTuple):
    """What a withdrawal touches; all ids ascending.

    `direct` rests on a withdrawn record in one step, `transitive` over any number of them,
    `in_good_standing` is the part of `transitive` that is in S_t.
    """

    direct: tuple[str, ...]
    transitive: tuple[str, ...]
    in_good_standing: tuple[str, ...]


def affected_one_step(record: Record) -> list[Record]:
    """Affected(b): the records with a support link to this one, in the order of the links."""
    return record.dependents


def affected_closure(record: Record) -> dict[Record, None]:
    """Affected*(b): every record with a non-empty support path to this one, as ordered keys.

    The record itself is among them only if it lies on a cycle.
    """
    return _with_all_above(dict.fromkeys(record.dependents))


def _with_all_above(reached: dict[Record, None]) -> dict[Record, None]:
    """Add to some records all that rest on them."""
    queue = list(reached)
    for current in queue:  # grows while it is gone through
        for dependent in current.dependents:
            if dependent not in reached:
                reached[dependent] = None
                queue.append(dependent)
    return reached


def affected(withdrawn: Sequence[Record]) -> Affected:
    """The report for one record or a set of them, withdrawn in fact or in thought."""
    direct: dict[Record, None] = {}
    for record in withdrawn:
        direct |= dict.fromkeys(affected_one_step(record))
    transitive = _with_all_above(direct.copy())
    return Affected(
        direct=sorted_ids(direct),
        transitive=sorted_ids(transitive),
        in_good_standing=sorted_ids(record for record in transitive if record.stands),
    )


def affected_by_ids(state: State, ids: Sequence[str]) -> Affected:
    """The report for records named by id. Raises UnknownRecordError for the first unknown one."""
    return affected([find_record(state, id_) for id_ in ids])


def find_record(state: State, id_: str) -> Record:
    """The record with this id. Raises UnknownRecordError."""
    record = state.records.get(id_)
    if record is None:
        raise UnknownRecordError(id_)
    return record


def sorted_ids(records: Iterable[Record]) -> tuple[str, ...]:
    """The ids of the records, ascending."""
    return tuple(sorted([record.id for record in records]))


@final
class SupportStep(NamedTuple):
    """One line of a support tree: a record, how the one above rests on it, and how deep it is.

    `repeated` marks a record whose supports were listed further up.
    """

    depth: int
    record: Record
    kind: LinkKind | None
    repeated: bool


def why(record: Record) -> tuple[SupportStep, ...]:
    """The support tree of a record down to its premises, depth first in the order of the links."""
    steps: list[SupportStep] = []
    listed: dict[Record, None] = {}
    pending: list[tuple[int, Record, LinkKind | None]] = [(0, record, None)]
    while pending:
        depth, current, kind = pending.pop()
        repeated = current in listed
        steps.append(SupportStep(depth, current, kind, repeated))
        if not repeated:
            listed[current] = None
            pending.extend(
                (depth + 1, support, link) for support, link in reversed(current.links())
            )
    return tuple(steps)
