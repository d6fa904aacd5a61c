"""Renders: a memory in words, each a pure function of what is kept, the keys and a budget.

Sections stand in the order of the keys asked for, else as they came. A section that would go over
the budget is left out with all that follow, and the last line says how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, assert_never

from processor.evidence.key import Key
from processor.evidence.layout import NEUTRAL, Line, Section, section
from processor.evidence.memories import TEXT_CLASSES, Memory
from processor.evidence.one_line import one_line
from schemas.evidence import RenderFormat
from schemas.wire import canonical_bytes

Count: TypeAlias = Callable[[str], int]
"""How many tokens a text has."""


def render(
    memory: Memory,
    how: RenderFormat,
    count: Count,
    budget_tokens: int,
    keys: Sequence[Key] | None = None,
    closed: bool = False,
) -> str:
    """The memory, or some of its keys, in at most so many tokens.

    What was superseded is left out unless `closed` asks for it.
    """
    asked = tuple(memory.keys() if keys is None else dict.fromkeys(keys))
    blocks = _passages(memory, asked) if memory.memory_class in TEXT_CLASSES else None
    total = len(asked) if blocks is None else len(blocks)
    kept: list[str] = []
    left = budget_tokens
    for place in range(total):
        said = (
            block(section(memory, asked[place], closed), how) if blocks is None else blocks[place]
        )
        cost = count(said + "\n") if said else 0
        if cost > left:
            more = f"({total - place} more)"
            kept += [more] if count(more + "\n") <= left else []
            break
        left -= cost
        kept += [said] if said else []
    return "\n".join(kept) + "\n" if kept else ""


def _passages(memory: Memory, asked: Sequence[Key]) -> list[str]:
    about = frozenset(asked)
    return [
        one_line(f"{passage.record}: {passage.text}")
        for passage in memory.passages
        if any(fact.key in about for fact in passage.facts)
    ]


def block(shown: Section, how: RenderFormat) -> str:
    """A section in one format, without a line break at its end; empty if it has no lines."""
    match how:
        case RenderFormat.FLAT:
            return "\n".join(map(one_line, _flat(shown)))
        case RenderFormat.VERBOSE:
            return "\n".join(map(one_line, _verbose(shown)))
        case RenderFormat.COMPACT:
            return one_line(_compact(shown))
        case RenderFormat.MINIMAL:
            return one_line(_minimal(shown))
        case RenderFormat.JSON:
            return canonical_bytes(section_values(shown)).decode()
        case _:
            assert_never(how)


def section_values(shown: Section) -> dict[str, object]:
    """A section as JSON values."""
    return {**shown._asdict(), "lines": [line._asdict() for line in shown.lines]}


def name(shown: Section) -> str:
    """The entity and attribute of a section, and its facet."""
    facet = "" if shown.facet is None else f" [{shown.facet}]"
    return f"{shown.entity} / {shown.attribute}{facet}"


def _flat(shown: Section) -> Iterator[str]:
    for line in shown.lines:
        yield f"{line.record}: {shown.entity}, {shown.attribute}: {line.value}{_when(line)}"


def _verbose(shown: Section) -> Iterator[str]:
    yield f"Key: {name(shown)}"
    if shown.status != NEUTRAL:
        yield f"  Status: {shown.status}"
    if shown.value is not None:
        yield f"  Current value: {shown.value}"
    for line in shown.lines:
        change = "" if line.change is None else f" ({line.change})"
        yield (
            f"  Turn {line.turn}, evidence {line.record}, value {line.value}{_when(line)}, "
            f"status {line.status}{change}"
        )


def _compact(shown: Section) -> str:
    said = "; ".join(
        f"{line.value}{_when(line)} {line.status}"
        f"{'' if line.change is None else ' ' + line.change} ({line.record})"
        for line in shown.lines
    )
    status = "" if shown.status in (NEUTRAL, "ok") else f" [{shown.status}]"
    return f"{name(shown)}{status}: {said}" if said else ""


def _minimal(shown: Section) -> str:
    if shown.value is not None:
        return f"{name(shown)} = {shown.value}"
    values = dict.fromkeys(line.value for line in shown.lines)
    mark = " = " if shown.status == NEUTRAL else " unresolved: "
    return f"{name(shown)}{mark}{' | '.join(values)}" if values else ""


def _when(line: Line) -> str:
    if line.valid_from is None and line.valid_to is None:
        return ""
    return f" from {line.valid_from or '?'}" + (f" to {line.valid_to}" if line.valid_to else "")
