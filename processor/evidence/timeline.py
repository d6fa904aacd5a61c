"""The history of a row in valid time: what was in force, from when until when.

Facts stand in the order of their valid times, whatever order they came in; those of one time, and
those that cannot be compared, in the order of the log. Each is in force until the next one that
says otherwise and does not merely contradict it, or until the end that it brings itself.
"""

from __future__ import annotations

from typing import NamedTuple, final

from processor.evidence.fact import Fact
from processor.evidence.granularity import is_finer
from processor.evidence.moment import beginning
from processor.evidence.row import Closed, Row
from schemas.evidence import Relation


@final
class Entry(NamedTuple):
    """A fact of the row's history: the holding it belongs to, and how it was closed, if it was."""

    fact: Fact
    holding: int
    closed: Closed | None


@final
class Period(NamedTuple):
    """Successive facts that say the same, and when they were in force.

    `valid_to` is where the next period begins, or the end that its last fact brings if that is
    earlier. `is_contested` says that another source contradicted it to its end.
    """

    entries: tuple[Entry, ...]
    valid_from: str | None
    valid_to: str | None
    next_entry: Entry | None
    is_contested: bool

    @property
    def value(self) -> str:
        """The value as it was first written."""
        return self.entries[0].fact.value

    @property
    def polarity(self) -> bool:
        """Whether the value is given or denied."""
        return self.entries[0].fact.polarity

    @property
    def is_live(self) -> bool:
        """Whether one of its facts is."""
        return any(entry.closed is None for entry in self.entries)

    def records(self) -> tuple[str, ...]:
        """The records behind it, each once."""
        return tuple(dict.fromkeys(entry.fact.record for entry in self.entries))

    def change(self) -> Relation | None:
        """How the next period stands to this one: it refines or it supersedes."""
        if self.next_entry is None:
            return None
        last, following = self.entries[-1], self.next_entry.fact
        closed = last.closed
        if closed is not None and closed.by == following.place and not closed.is_late:
            return closed.relation
        finer = following.polarity and is_finer(following.sense, last.fact.sense)
        return Relation.REFINES if finer else Relation.SUPERSEDES


def periods(row: Row) -> tuple[Period, ...]:
    """The history of the row, earliest first."""
    entries = _in_valid_order(row)
    conflicts = frozenset((conflict.new, conflict.old) for conflict in row.conflicts)
    runs: list[list[int]] = []
    for index, entry in enumerate(entries):
        if runs and _says_the_same(entries[runs[-1][-1]].fact, entry.fact):
            runs[-1].append(index)
        else:
            runs.append([index])
    return tuple(_period(entries, run, conflicts) for run in runs)


def _in_valid_order(row: Row) -> list[Entry]:
    in_log = sorted(
        [
            *(Entry(fact, h.place, None) for h in row.live for fact in h.facts),
            *(Entry(closed.fact, closed.holding, closed) for closed in row.closed),
        ],
        key=lambda entry: entry.fact.place,
    )
    if all(entry.fact.moment is not None for entry in in_log):
        return sorted(in_log, key=lambda entry: entry.fact.moment or 0)
    ordered: list[Entry] = []
    for entry in in_log:
        place = len(ordered)
        while place and entry.fact.is_older(ordered[place - 1].fact):
            place -= 1
        ordered.insert(place, entry)
    return ordered


def _says_the_same(one: Fact, other: Fact) -> bool:
    return (one.sense, one.polarity) == (other.sense, other.polarity)


def _period(entries: list[Entry], run: list[int], conflicts: frozenset[tuple[int, int]]) -> Period:
    last = entries[run[-1]]
    contested = False
    following: Entry | None = None
    for entry in entries[run[-1] + 1 :]:
        if last.fact.agrees(entry.fact):
            continue
        if _conflict(last, entry, conflicts):
            contested = True
            continue
        following = entry
        break
    contested = contested or any(
        _conflict(last, before, conflicts) and _ends_together(last, before)
        for before in entries[: run[0]]
    )
    first = entries[run[0]].fact
    takeover = None if following is None else following.fact.valid_from
    return Period(
        tuple(entries[index] for index in run),
        first.valid_from,
        _earlier(last.fact.valid_to, takeover),
        following,
        contested,
    )


def _conflict(one: Entry, other: Entry, conflicts: frozenset[tuple[int, int]]) -> bool:
    pair = (one.holding, other.holding)
    return pair in conflicts or pair[::-1] in conflicts


def _ends_together(one: Entry, other: Entry) -> bool:
    if one.closed is None or other.closed is None:
        return one.closed is other.closed
    return one.closed.turn <= other.closed.turn


def _earlier(one: str | None, other: str | None) -> str | None:
    ends = [(beginning(end), end) for end in (one, other) if end is not None]
    return min(ends)[1] if ends else None
