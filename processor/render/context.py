"""The state in words, for a model's context window and for people.

Pure functions of the state with a stable order. Claims that were given up are left out unless they
are asked for, because a reader takes everything it is shown for current.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from processor.engine.messages import named
from processor.engine.record import Record
from processor.engine.state import State
from processor.engine.transition import StandingChange
from processor.engine.turn import TurnOutcome
from schemas.derived import Standing

CONTEXT_CHARS_MAX = 200_000


def render_change(state: State, outcome: TurnOutcome, turn: int) -> str:
    """What a turn changed, one line each; empty if it changed nothing worth telling."""
    lines = [
        *_introduced(state, turn, outcome),
        *(_standing(state, change) for change in outcome.standings),
    ]
    if outcome.ungrounded:
        lines.append(f"No longer resting on standing ground: {named(outcome.ungrounded)}.")
    lines.extend(f"Refused: {rejection.reason}." for rejection in outcome.rejections)
    lines.extend(f"Note: {note.text}." for note in outcome.notes)
    return clipped(lines)


def render_context(state: State, include_withdrawn: bool = False) -> str:
    """The state as a model should see it: decisions, what is in force, open questions."""
    standing = [record for record in state.records.values() if record.stands]
    decisions = [record for record in standing if record.is_decision]
    others = [record for record in standing if not record.is_decision]
    sections = [
        ("Decided", [_line(state, record) for record in decisions]),
        ("In force", [_line(state, record) for record in others]),
        ("In dispute", [f"- {id_}" for id_ in sorted(state.disputed)]),
        ("Open", [_problem(p.id, p.text) for p in state.open_problems()]),
    ]
    if include_withdrawn:
        withdrawn = [record for record in state.records.values() if not record.stands]
        sections.append(("Given up", [_line(state, record) for record in withdrawn]))
    lines: list[str] = []
    for title, entries in sections:
        if entries:
            lines += [f"{title}:", *entries]
    return clipped(lines)


def clipped(lines: Sequence[str]) -> str:
    """The lines as one text of bounded length; what did not fit is counted, not cut in two."""
    text: list[str] = []
    left = CONTEXT_CHARS_MAX
    for number, hostile in enumerate(lines):
        line = _one_line(hostile)
        left -= len(line) + 1
        if left < 0:
            text.append(f"({len(lines) - number} more lines)")
            break
        text.append(line)
    return "\n".join(text)


def _one_line(text: str) -> str:
    """One record is one line: a claim must not pass for lines of ours."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)


def _introduced(state: State, turn: int, outcome: TurnOutcome) -> Iterable[str]:
    for id_ in outcome.introduced:
        record = state.records[id_]
        rests = f" (rests on {named([s.id for s in record.supports])})" if record.supports else ""
        yield f"New {record.kind} {record.id} by {record.speaker}: {record.claim}{rests}"


def _standing(state: State, change: StandingChange) -> str:
    what = f"{change.record}: {state.records[change.record].claim}"
    if change.standing is Standing.RESOLVED:
        return f"Settled: {what}"
    return f"{change.standing.capitalize()} ({change.op} by {change.by}): {what}"


def _line(state: State, record: Record) -> str:
    marks = [] if record.grounded else ["not grounded"]
    if record.id in state.disputed:
        marks.append("disputed")
    if record.standing is not Standing.ACTIVE:
        marks.append(record.standing)
    mark = f" [{', '.join(marks)}]" if marks else ""
    rests = f" <- {named([s.id for s in record.supports])}" if record.supports else ""
    return f"- {record.id} ({record.speaker}): {record.claim}{mark}{rests}"


def _problem(id_: str, text: str) -> str:
    return f"- {id_}: {text}"
