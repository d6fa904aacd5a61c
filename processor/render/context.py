"""The state in words, for a model's context window and for people.

Pure functions of the state with a stable order. Claims that were given up are left out unless they
are asked for, because a reader takes everything it is shown for current. A claim stands last on its
line, so nothing in it passes for a mark or a link of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from processor.engine.messages import named
from processor.engine.record import Record
from processor.engine.state import Problem, State
from processor.engine.transition import StandingChange
from processor.engine.turn import TurnOutcome
from processor.engine.verify import grade
from processor.render.lines import Entry, Section, clipped, written
from schemas.derived import Standing

_FIRST, _DECIDED, _DISPUTED, _OPEN, _IN_FORCE, _GIVEN_UP = range(6)
"""What matters more has the smaller number."""


def render_change(state: State, outcome: TurnOutcome, turn: int) -> str:
    """What a turn changed, one line each; empty if it changed nothing worth telling."""
    lines = [
        *_introduced(state, outcome),
        *(_standing(state, change) for change in outcome.standings),
        *_in_dispute(state, turn),
    ]
    if outcome.ungrounded:
        lines.append(f"No longer resting on standing ground: {named(outcome.ungrounded)}.")
    lines.extend(f"Refused: {rejection.reason}." for rejection in outcome.rejections)
    lines.extend(f"Note: {note.text}." for note in outcome.notes)
    return clipped(lines)


def render_context(
    state: State,
    include_withdrawn: bool = False,
    budget_tokens: int | None = None,
    first: Sequence[str] = (),
) -> str:
    """The state as a model should see it: decisions, what is in force, open questions.

    Records named in `first` come first, whatever became of them. Within a budget, they and then
    decisions, disputes and open questions are chosen before the rest, of which the records that
    changed last.
    """
    asked = dict.fromkeys(id_ for id_ in first if id_ in state.records)
    records = [record for record in state.records.values() if record.id not in asked]
    standing = [record for record in records if record.stands]
    sections = [
        Section("Asked about", [record_entry(state, state.records[id_], _FIRST) for id_ in asked]),
        Section(
            "Decided",
            [record_entry(state, record, _DECIDED) for record in standing if record.is_decision],
        ),
        Section(
            "In force",
            [
                record_entry(state, record, _IN_FORCE)
                for record in standing
                if not record.is_decision
            ],
        ),
        Section("In dispute", [Entry(f"- {id_}", _DISPUTED) for id_ in sorted(state.disputed)]),
        Section("Open", [problem_entry(problem, _OPEN) for problem in state.open_problems()]),
    ]
    if include_withdrawn:
        withdrawn = [record for record in records if not record.stands]
        sections.append(
            Section("Given up", [record_entry(state, record, _GIVEN_UP) for record in withdrawn])
        )
    return written(sections, budget_tokens)


def record_entry(state: State, record: Record, rank: int) -> Entry:
    """A record with its marks and its links, its claim last."""
    marks = [] if record.grounded else [_grounding(record)]
    if record.id in state.disputed:
        marks.append("disputed")
    if record.standing is not Standing.ACTIVE:
        marks.append(record.standing)
    mark = f" [{', '.join(marks)}]" if marks else ""
    rests = f" <- {named([s.id for s in record.supports])}" if record.supports else ""
    changed = record.trail[-1].turn if record.trail else record.turn
    return Entry(f"- {record.id}{mark} ({record.speaker}){rests}: {record.claim}", rank, changed)


def problem_entry(problem: Problem, rank: int) -> Entry:
    """A question, or an observation that needs an explanation."""
    return Entry(f"- {problem.id} ({problem.speaker}): {problem.text}", rank, problem.turn)


def _grounding(record: Record) -> str:
    return "not grounded" if not record.core_grounded else grade(record).replace("_", " ")


def _introduced(state: State, outcome: TurnOutcome) -> Iterable[str]:
    for id_ in outcome.introduced:
        record = state.records[id_]
        rests = f" (rests on {named([s.id for s in record.supports])})" if record.supports else ""
        yield f"New {record.kind} {record.id} by {record.speaker}{rests}: {record.claim}"


def _in_dispute(state: State, turn: int) -> Iterable[str]:
    """The sides of the disputes that the turn opened and did not settle itself."""
    if not state.disputes:
        return
    opened = takewhile(lambda dispute: dispute.opened_turn == turn, reversed(state.disputes))
    sides = {id_ for dispute in opened if dispute.cleared_turn is None for id_ in dispute.sides()}
    if sides:
        yield f"In dispute: {named(sorted(sides))}."


def _standing(state: State, change: StandingChange) -> str:
    what = f"{change.record}: {state.records[change.record].claim}"
    if change.standing is Standing.RESOLVED:
        return f"Settled: {what}"
    return f"{change.standing.capitalize()} ({change.op} by {change.by}): {what}"
