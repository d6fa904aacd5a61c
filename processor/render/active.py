"""The active evidence: what a model that answers may rely on, and what it may not any more.

What was withdrawn is named with the reason but without its claim: a reader takes everything it is
shown for current.
"""

from __future__ import annotations

from processor.engine.conversation import Conversation
from processor.engine.record import Happening, Record
from processor.render.context import problem_entry, record_entry
from processor.render.explanation import explain_record
from processor.render.lines import Entry, Section, written
from schemas.derived import Standing

_FALLEN, _DECIDED, _DISPUTED, _OPEN, _IN_FORCE, _WITHDRAWN = range(6)
"""What matters more has the smaller number."""


def render_active(
    conversation: Conversation,
    budget_tokens: int | None = None,
    *,
    include_withdrawn: bool = False,
) -> str:
    """What may be relied on, what may not and why; with `include_withdrawn` the old claims too."""
    state = conversation.state
    records = list(state.records.values())
    standing = [record for record in records if record.stands]
    sound = [r for r in standing if r.core_grounded and r.id not in state.disputed]
    sections = [
        Section("Decided", [record_entry(state, r, _DECIDED) for r in sound if r.is_decision]),
        Section(
            "In force", [record_entry(state, r, _IN_FORCE) for r in sound if not r.is_decision]
        ),
        Section(
            "In dispute, rely on neither side",
            [record_entry(state, r, _DISPUTED) for r in standing if r.id in state.disputed],
        ),
        Section("Open", [problem_entry(problem, _OPEN) for problem in state.open_problems()]),
        Section(
            "No longer grounded, do not rely on these",
            [
                Entry(f"- {explain_record(state, r.id)}", _FALLEN, r.turn)
                for r in standing
                if not r.core_grounded and r.id not in state.disputed
            ],
        ),
        Section(
            "Withdrawn, do not rely on these",
            [_withdrawn(r, include_withdrawn) for r in records if not r.stands],
        ),
    ]
    return written(sections, budget_tokens)


def _withdrawn(record: Record, with_claim: bool) -> Entry:
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
        _WITHDRAWN,
        fall.turn,
    )
