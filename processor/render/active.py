"""The active evidence: what a model that answers may rely on, and what it may not any more.

What was withdrawn is named with the reason but without its claim: a reader takes everything it is
shown for current.
"""

from __future__ import annotations

from collections.abc import Sequence

from processor.engine.record import Happening, Record
from processor.engine.state import State
from processor.engine.verify import verify_fallen
from processor.render.context import problem_entry, record_entry
from processor.render.explanation import explain
from processor.render.lines import Entry, Section, written
from schemas.derived import Standing

_FIRST, _FALLEN, _DECIDED, _DISPUTED, _OPEN, _IN_FORCE, _WITHDRAWN = range(7)
"""What matters more has the smaller number."""


def render_active(
    state: State,
    include_withdrawn: bool = False,
    budget_tokens: int | None = None,
    first: Sequence[str] = (),
) -> str:
    """What may be relied on, what may not and why; with `include_withdrawn` the old claims too.

    Within a budget the records named in `first` are chosen before all others.
    """
    records = list(state.records.values())
    standing = [record for record in records if record.stands]
    sound = [r for r in standing if r.core_grounded and r.id not in state.disputed]
    fallen = [r for r in standing if not r.core_grounded and r.id not in state.disputed]
    why = verify_fallen(state, [r.id for r in fallen])
    asked = dict.fromkeys(first)

    def shown(record: Record, rank: int) -> Entry:
        return record_entry(state, record, _FIRST if record.id in asked else rank)

    sections = [
        Section("Decided", [shown(r, _DECIDED) for r in sound if r.is_decision]),
        Section("In force", [shown(r, _IN_FORCE) for r in sound if not r.is_decision]),
        Section(
            "In dispute, rely on neither side",
            [shown(r, _DISPUTED) for r in standing if r.id in state.disputed],
        ),
        Section("Open", [problem_entry(problem, _OPEN) for problem in state.open_problems()]),
        Section(
            "No longer grounded, do not rely on these",
            [
                Entry(f"- {explain(r, why[r.id])}", _FIRST if r.id in asked else _FALLEN, r.turn)
                for r in fallen
            ],
        ),
        Section(
            "Withdrawn, do not rely on these",
            [
                _withdrawn(r, include_withdrawn, _FIRST if r.id in asked else _WITHDRAWN)
                for r in records
                if not r.stands
            ],
        ),
    ]
    return written(sections, budget_tokens)


def _withdrawn(record: Record, with_claim: bool, rank: int) -> Entry:
    """Since when, through what and by whom a record does not stand."""
    fall = next(
        entry
        for entry in reversed(record.happened(Happening.STANDING))
        if entry.value == record.standing
    )
    how = "weakened" if record.standing is Standing.WEAKENED else "withdrawn"
    through = f" because of {fall.by}" if fall.by is not None else ""
    claim = f": {record.claim}" if with_claim else ""
    return Entry(
        f"- {record.id}, {how} at turn {fall.turn} by {fall.speaker}{through}{claim}",
        rank,
        fall.turn,
    )
