"""Retraction impacts: what rested on a record at the moment it left good standing."""

from __future__ import annotations

from typing import NamedTuple, final

from processor.engine.record import Record
from processor.engine.retraction import affected, sorted_ids
from processor.engine.transition import Cause, Transition
from schemas.derived import FallenStanding


@final
class Impact(NamedTuple):
    """A record left good standing: what rested on it right after that operation; ids ascending."""

    withdrawn: str
    standing: FallenStanding
    op: str
    by: str
    direct: tuple[str, ...]
    transitive: tuple[str, ...]
    in_good_standing: tuple[str, ...]
    newly_ungrounded: tuple[str, ...]
    decisions: tuple[str, ...]


def measure_impact(
    transition: Transition,
    withdrawn: Record,
    standing: FallenStanding,
    cause: Cause,
    born: int,
    lost: int,
) -> Impact:
    """The report on a withdrawal; `born` and `lost` count what there was before the operation."""
    assert cause.by is not None
    new = dict.fromkeys(transition.born[born:])
    report = affected([withdrawn])
    resting = [transition.state.records[id_] for id_ in report.in_good_standing]
    return Impact(
        withdrawn=withdrawn.id,
        standing=standing,
        op=cause.op,
        by=cause.by,
        direct=report.direct,
        transitive=report.transitive,
        in_good_standing=report.in_good_standing,
        newly_ungrounded=sorted_ids(
            record
            for record in transition.lost[lost:]
            if record.stands and record is not withdrawn and record not in new
        ),
        decisions=sorted_ids(record for record in resting if record.is_decision),
    )
