"""Lines and sections of a rendered text: one entry is one line, and a budget is never overdrawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

from processor.evidence.one_line import one_line
from processor.render.tokens import THOUSAND, estimate_tokens, token_thousandths

CHARS_MAX = 200_000
_ENTRY_MIN = 4 * THOUSAND
"""No entry takes less; where less is left, nothing more is tried."""


@final
class Entry(NamedTuple):
    """One line, and how much it matters: the least `rank` first, then the newest."""

    line: str
    rank: int
    turn: int = 0


@final
class Section(NamedTuple):
    """A title and what stands under it, in the order in which it is shown."""

    title: str
    entries: Sequence[Entry]


def clipped(lines: Iterable[str]) -> str:
    """The lines as one text of bounded length; what did not fit is counted, not cut in two."""
    pending = [one_line(line) for line in lines]
    text: list[str] = []
    left = CHARS_MAX
    for number, line in enumerate(pending):
        left -= len(line) + 1
        if left < 0:
            text.append(f"({len(pending) - number} more lines)")
            break
        text.append(line)
    return "\n".join(text)


def written(sections: Sequence[Section], budget_tokens: int | None = None) -> str:
    """The sections that are not empty as one text, which takes at most the budget.

    What matters most is chosen first; a line is there or is not. Left-out lines are counted by
    section in a last line. Empty if not even that fits.
    """
    filled = [section for section in sections if section.entries]
    if budget_tokens is None:
        return clipped(
            line for title, entries in filled for line in (f"{title}:", *(e.line for e in entries))
        )
    note = _left_out((title, len(entries)) for title, entries in filled)
    left = budget_tokens - estimate_tokens(note)
    if left < 0:
        return ""
    chosen = _chosen(filled, left * THOUSAND)
    lines: list[str] = []
    missing: list[tuple[str, int]] = []
    for number, (title, entries) in enumerate(filled):
        kept = [
            one_line(entry.line) for place, entry in enumerate(entries) if (number, place) in chosen
        ]
        lines += [f"{title}:", *kept] if kept else []
        missing += [(title, len(entries) - len(kept))] if len(kept) < len(entries) else []
    return "\n".join([*lines, _left_out(missing)] if missing else lines)


def _chosen(sections: Sequence[Section], left: int) -> dict[tuple[int, int], None]:
    """The places of the entries that fit, those that matter most first; `left` in thousandths."""
    ranked = sorted(
        (
            (entry.rank, -entry.turn, number, place)
            for number, section in enumerate(sections)
            for place, entry in enumerate(section.entries)
        ),
    )
    chosen: dict[tuple[int, int], None] = {}
    opened: dict[int, None] = {}
    for _, _, number, place in ranked:
        if left < _ENTRY_MIN:
            break
        title, entries = sections[number]
        cost = _cost(one_line(entries[place].line))
        if number not in opened:
            cost += _cost(f"{title}:")
        if cost <= left:
            left -= cost
            opened[number] = None
            chosen[number, place] = None
    return chosen


def _cost(line: str) -> int:
    return token_thousandths(line) + THOUSAND  # and the end of the line


def _left_out(counts: Iterable[tuple[str, int]]) -> str:
    """What there was no room for; shortest where nothing was left out of a section."""
    told = ", ".join(f"{count} of '{title}'" for title, count in counts)
    return f"(left out for want of room: {told})"
