"""The history of a row by its definition, looking at every pair of facts."""

from __future__ import annotations

from processor.evidence.fact import Fact
from processor.evidence.moment import beginning
from processor.evidence.row import Row
from processor.evidence.timeline import Entry, Period


def naive_periods(row: Row) -> tuple[Period, ...]:
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
