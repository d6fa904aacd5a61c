"""The parts of the state as canonical values: what digests hash is what snapshots hold."""

from __future__ import annotations

from processor.engine.plausibility.formula import to_wire
from processor.engine.record import Record
from processor.engine.state import Dispute, Problem


def record_introduction(record: Record) -> list[object]:
    """What a record was introduced with; its trail holds the rest.

    The role came with the rules that look at it; a record of before has no place for one.
    """
    introduction: list[object] = [
        record.id,
        record.claim,
        record.kind,
        record.op,
        record.speaker,
        record.turn,
        record.audience,
        None if record.formula is None else to_wire(record.formula),
        record.atoms,
        record.answers,
        [premise.id for premise in record.premises()],
    ]
    return introduction if record.role is None else [*introduction, record.role]


def problem_posed(problem: Problem) -> list[object]:
    """What a problem was posed with; its answers come later."""
    return [
        problem.id,
        problem.text,
        problem.about,
        problem.speaker,
        problem.turn,
        problem.is_question,
    ]


def dispute_values(dispute: Dispute) -> list[object]:
    """The whole of a dispute."""
    return [dispute.observation, dispute.contradicts, dispute.opened_turn, dispute.cleared_turn]
