"""What a memory shows of a key: the lines that every format writes out.

The layout is the same for every class, so that two classes differ in what they know and in nothing
else: the render-matched control has the ledger's lines with every status neutral.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

from processor.evidence.fact import Fact
from processor.evidence.key import Key
from processor.evidence.memories import AWARE_CLASSES, TEXT_CLASSES, Memory
from processor.evidence.row import Row
from processor.evidence.timeline import Entry, periods
from schemas.evidence import MemoryClass


@final
class Line(NamedTuple):
    """One fact of a key as it is shown; `status` is live, deprecated or a dash."""

    value: str
    valid_from: str | None
    valid_to: str | None
    status: str
    change: str | None
    record: str
    turn: int


@final
class Section(NamedTuple):
    """One key as it is shown: the value in force if the class tells, and its lines, newest first.

    `status` is ok, unresolved, or a dash for a class that cannot tell.
    """

    entity: str
    attribute: str
    facet: str | None
    value: str | None
    status: str
    lines: tuple[Line, ...]


NEUTRAL = "-"


def section(memory: Memory, key: Key, closed: bool = False) -> Section:
    """A key that the memory has, as it is shown; what was superseded only if `closed` asks."""
    assert memory.memory_class not in TEXT_CLASSES, "words are shown as they are"
    row = memory.rows.get(key)
    if row is None:
        return _blind_section(memory.facts(key))
    if memory.memory_class not in AWARE_CLASSES:
        return _blind_section([fact for holding in row.live for fact in holding.facts])
    return _row_section(row, closed, typed=memory.memory_class is MemoryClass.LEDGER)


def _blind_section(facts: Sequence[Fact]) -> Section:
    newest = sorted(facts, key=lambda fact: (fact.moment or 0, fact.place), reverse=True)
    return _of(facts[0], None, NEUTRAL, tuple(_neutral(fact) for fact in newest))


def _row_section(row: Row, closed: bool, *, typed: bool) -> Section:
    history = periods(row)
    if not history:  # all that the class has kept of the key was withdrawn
        return Section(row.key.entity, row.key.attribute, row.key.facet or None, None, "ok", ())
    lines = [
        Line(
            _said(entry.fact),
            entry.fact.valid_from,
            period.valid_to,
            "live" if entry.closed is None else "deprecated",
            _change(entry) if typed else None,
            entry.fact.record,
            entry.fact.turn,
        )
        for period in reversed(history)
        for entry in reversed(period.entries)
        if closed or entry.closed is None
    ]
    first = history[0].entries[0].fact
    held = None if row.is_unresolved else row.in_force()
    value = None if held is None else held.facts[0].value
    return _of(first, value, "unresolved" if row.is_unresolved else "ok", tuple(lines))


def _change(entry: Entry) -> str | None:
    """How a fact was closed, in one word."""
    if entry.closed is None:
        return None
    if entry.closed.is_late:
        return "late"
    return "withdrawn" if entry.closed.relation is None else entry.closed.relation.value


def _neutral(fact: Fact) -> Line:
    return Line(_said(fact), fact.valid_from, fact.valid_to, NEUTRAL, None, fact.record, fact.turn)


def _of(first: Fact, value: str | None, status: str, lines: tuple[Line, ...]) -> Section:
    return Section(first.entity, first.attribute, first.facet, value, status, lines)


def _said(fact: Fact) -> str:
    return fact.value if fact.polarity else f"not {fact.value}"
