"""The values that a text touches, as a prompt shows them: in force, replaced, in conflict.

A key is touched if the text names its entity, its attribute, or a record that gave it a value, or
if it changed lately, since people say "it". The lines are those of a rendered ledger, but that
everything that was said stands in quotes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from processor.engine.conversation import Conversation
from processor.evidence.key import Key, normalised
from processor.evidence.layout import Line, Section, section
from processor.evidence.memories import Memory
from processor.evidence.projection import ledger_of
from processor.evidence.renders import block
from processor.evidence.row import Row
from processor.render.relevance import RECENT_TURNS, ids_in, names
from schemas.evidence import MemoryClass, RenderFormat
from schemas.quote import quoted_beginning

TITLE = "# Values (live: in force; deprecated: in force no longer; unresolved: in conflict)"
KEYS_MAX = 32
LINES_MAX = (8, 2)
"""How many facts of a key are shown, what is live and then what was replaced last; how many where
there is no room for as many."""
CHARS_SHOWN = 160
_BY_RECORD, _BY_ENTITY, _BY_ATTRIBUTE, _LATELY = 8, 4, 2, 1


def value_lines(
    conversation: Conversation, text: str, left: int, cost: Callable[[str], int]
) -> list[str]:
    """A line for each key that the text touches, the likeliest first, as far as there is room.

    `cost` is what a line takes, in the unit of `left`.
    """
    if not conversation.atom_sources:
        return []
    memory = Memory(MemoryClass.LEDGER)
    memory.ledger = ledger_of(conversation)
    left -= cost(TITLE)
    lines: list[str] = []
    for key in _touched(memory, text, conversation.turn - RECENT_TURNS):
        shown = section(memory, key, closed=True)
        for most in LINES_MAX:
            line = _line(shown, most)
            taken = cost(line)
            if taken <= left:
                left -= taken
                lines.append(line)
                break
    return lines


def _touched(memory: Memory, text: str, lately: int) -> list[Key]:
    """The keys that matter most to the text; of equal ones those that changed last."""
    said = normalised(text)
    known = memory.ledger.keys_of_record
    by_record = dict.fromkeys(key for id_ in ids_in(text) for key in known.get(id_, ()))
    ranked: list[tuple[int, int, Key]] = []
    for key, row in memory.rows.items():
        changed = _changed(row)
        rank = (
            _BY_RECORD * (key in by_record)
            + _BY_ENTITY * names(said, key.entity)
            + _BY_ATTRIBUTE * names(said, key.attribute)
            + _LATELY * (changed > lately)
        )
        if rank:
            ranked.append((rank, changed, key))
    return [key for _, _, key in heapq.nlargest(KEYS_MAX, ranked)]


def _changed(row: Row) -> int:
    """The turn in which the row changed last."""
    live = max((holding.facts[-1].turn for holding in row.live), default=0)
    return max(live, row.closed[-1].turn if row.closed else 0)


def _line(shown: Section, most: int) -> str:
    live = [line for line in shown.lines if line.status == "live"]
    closed = [line for line in shown.lines if line.status != "live"]
    kept = [*live, *closed][:most]
    more = len(shown.lines) - len(kept)
    line = block(_as_data(shown, kept), RenderFormat.COMPACT)
    return f"{line}; {more} more" if more else line


def _as_data(shown: Section, lines: list[Line]) -> Section:
    """The section with these lines, and all that was said in quotes."""
    return shown._replace(
        entity=_quoted(shown.entity),
        attribute=_quoted(shown.attribute),
        facet=None if shown.facet is None else _quoted(shown.facet),
        lines=tuple(_line_as_data(lines)),
    )


def _line_as_data(lines: list[Line]) -> Iterator[Line]:
    for line in lines:
        yield line._replace(value=_quoted(line.value))


def _quoted(text: str) -> str:
    return quoted_beginning(text, CHARS_SHOWN)
