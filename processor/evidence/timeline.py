"""The history of a row in valid time: what was in force, from when until when.

Facts stand in the order of their valid times, whatever order they came in; those of one time, and
those that cannot be compared, in the order of the log. Each is in force until the next one that
says otherwise and does not merely contradict it, or until the end that it brings itself.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from heapq import merge
from itertools import chain, groupby, takewhile
from typing import NamedTuple, TypeAlias, final

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


Run: TypeAlias = tuple[Entry, ...]
"""Successive entries that say the same."""
Partners: TypeAlias = Mapping[int, Set[int]]
"""By the place of a holding those that it was ever in conflict with."""


@final
class End(NamedTuple):
    """What ends a run, and whether something contradicted it before that."""

    by: Entry | None
    is_contested: bool


NEVER = End(None, is_contested=False)


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
    """The history of the row, earliest first, in little more time than it takes to read it."""
    runs = [tuple(run) for _, run in groupby(_in_valid_order(row), key=_says)]
    partners: dict[int, set[int]] = {}
    for new, old, _ in row.conflicts:
        partners.setdefault(new, set()).add(old)
        partners.setdefault(old, set()).add(new)
    ends = _ends(runs, partners)
    contested = _contested_before(runs, partners)
    return tuple(map(_period, runs, ends, contested))


def _in_valid_order(row: Row) -> list[Entry]:
    """In the order of the log; what comes together and can be compared, by its valid time."""
    in_log = sorted(
        [
            *(Entry(fact, h.place, None) for h in row.live for fact in h.facts),
            *(Entry(closed.fact, closed.holding, closed) for closed in row.closed),
        ],
        key=lambda entry: entry.fact.place,
    )
    comparable = groupby(in_log, key=lambda entry: entry.fact.moment is None)
    return [entry for _, together in comparable for entry in sorted(together, key=_valid_time)]


def _valid_time(entry: Entry) -> int:
    moment = entry.fact.moment
    return entry.fact.told_turn if moment is None else moment


def _says(entry: Entry) -> tuple[str, bool]:
    return entry.fact.sense, entry.fact.polarity


def _period(run: Run, end: End, is_contested: bool) -> Period:
    takeover = None if end.by is None else end.by.fact.valid_from
    return Period(
        run,
        run[0].fact.valid_from,
        _earlier(run[-1].fact.valid_to, takeover),
        end.by,
        end.is_contested or is_contested,
    )


def _ends(runs: Sequence[Run], partners: Partners) -> list[End]:
    """What ends each run: the next entry that says otherwise and does not merely contradict it.

    From the last run to the first, and for runs that nothing tells apart up to the next of them.
    """
    ends = [NEVER] * len(runs)
    like: dict[tuple[str, bool, int | None], int] = {}
    given: list[int] = []
    saying: dict[tuple[str, bool], list[int]] = {}
    for place in reversed(range(len(runs))):
        last = runs[place][-1]
        sense, polarity = _says(last)
        ahead: Iterator[int] = reversed(saying.get((sense, not polarity), ()))
        if polarity:
            others = (each for each in reversed(given) if runs[each][0].fact.sense != sense)
            ahead = merge(ahead, others)
        against = partners.get(last.holding)
        kind = (sense, polarity, None if against is None else last.holding)
        known = like.get(kind)
        known_end = NEVER if known is None else ends[known]
        near = takewhile(lambda each: known is None or each < known, ahead)  # noqa: B023 - used now
        ends[place] = _first_end((runs[each] for each in near), against or (), known_end)
        like[kind] = place
        saying.setdefault((sense, polarity), []).append(place)
        if polarity:
            given.append(place)
    return ends


def _first_end(ahead: Iterable[Run], against: Container[int], known: End) -> End:
    """The first entry that is no mere contradiction; if there is none, what was `known` before."""
    is_contested = False
    for entry in chain.from_iterable(ahead):
        if entry.holding not in against:
            return End(entry, is_contested)
        is_contested = True
    return End(known.by, is_contested or known.is_contested)


def _contested_before(runs: Sequence[Run], partners: Partners) -> Iterator[bool]:
    """Whether an earlier entry that contradicts a run lasted as long, run by run."""
    live: set[int] = set()
    closed: dict[int, int] = {}
    for run in runs:
        last = run[-1]
        against = partners.get(last.holding, ())
        if last.closed is None:
            yield not live.isdisjoint(against)
        else:
            yield any(last.closed.turn <= closed.get(each, 0) for each in against)
        for entry in run:
            if entry.closed is None:
                live.add(entry.holding)
            else:
                closed[entry.holding] = max(entry.closed.turn, closed.get(entry.holding, 0))


def _earlier(one: str | None, other: str | None) -> str | None:
    ends = [(beginning(end), end) for end in (one, other) if end is not None]
    return min(ends)[1] if ends else None
