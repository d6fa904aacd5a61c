"""Why a claim is not grounded: the failing records below it, each with a shortest path to it.

A failing record is reached through records that are not grounded either, so nothing else is walked.
The walk goes down from each claim, or up from all failing records at once where each claim is told
of fewer of them than there are claims, as when one withdrawal ungrounds thousands of decisions.
Both find the same: the nearest failing records, those of one distance by id, and of the shortest
paths to one of them the path whose ids come first.

What is said is bounded whatever the shape of the map: the verdicts of one log event share
`FAILURES_MAX`, and a path of more than `PATH_IDS_MAX` ids is given by its two ends. As a claim is
told of `most` failing records only where `most` times the claims is within that bound, the cheaper
of the two walks passes no record more than about a hundred times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

from processor.engine.record import Happening, Record, TrailEntry
from schemas.derived import FAILURES_MAX, PATH_IDS_MAX, Cause, Failure

_END_IDS = PATH_IDS_MAX // 2


@final
class Failures(NamedTuple):
    """The nearest failing records below a claim, by id, and whether these are all."""

    listed: tuple[Failure, ...] = ()
    complete: bool = True


NO_FAILURES = Failures()


@final
class _Way(NamedTuple):
    """A support path from a claim's record; of a long one the two ends and how much is between."""

    ids: tuple[str, ...]
    omitted: int = 0

    def down_to(self, support: Record) -> _Way:
        """One support further."""
        return self._bounded((*self.ids, support.id))

    def up_from(self, dependent: Record) -> _Way:
        """The same from a record that rests on its first."""
        return self._bounded((dependent.id, *self.ids))

    def _bounded(self, ids: tuple[str, ...]) -> _Way:
        if len(ids) <= PATH_IDS_MAX:
            return _Way(ids, self.omitted)
        return _Way((*ids[:_END_IDS], *ids[-_END_IDS:]), self.omitted + 1)


def equal_share(claims: int) -> int:
    """How many failing records each claim of one log event is told of; at least its nearest."""
    return max(1, FAILURES_MAX // max(1, claims))


def failures(starts: Sequence[Record], most: int = FAILURES_MAX) -> Failures:
    """The failing records below a claim that rests on these records, the starts included."""
    found: list[tuple[Record, _Way]] = []
    for level in _levels_down(starts):
        failing = sorted((record for record in level if not record.stands), key=_by_id)
        found.extend((record, level[record]) for record in failing)
        if len(found) > most:
            break
    return _told([_failure(record, _fall(record), way) for record, way in found[: most + 1]], most)


def failures_of_each(records: Sequence[Record], most: int = FAILURES_MAX) -> list[Failures]:
    """The same for each of many claims that rest on one record."""
    below = dict.fromkeys(record for level in _levels_down(records) for record in level)
    failing = [record for record in below if not record.stands]
    if min(len(failing), most) >= len(records):
        return [failures([record], most) for record in records]
    falls = {record: _fall(record) for record in failing}
    found: dict[Record, list[Failure]] = {record: [] for record in records}
    for level in _levels_up(failing, below, most + 1):
        for (record, fallen), way in level.items():
            if record in found:
                found[record].append(_failure(fallen, falls[fallen], way))
    return [_told(found[record], most) for record in records]


def _told(nearest_first: Sequence[Failure], most: int) -> Failures:
    """Of the nearest failing records, one more than may be told if there are so many."""
    told = sorted(nearest_first[:most], key=lambda failure: failure.record)
    return Failures(tuple(told), complete=len(nearest_first) <= most)


def _levels_down(starts: Sequence[Record]) -> Iterator[dict[Record, _Way]]:
    """The ungrounded records below the starts, level by level, each with the way there.

    A level is in the order of its ways and supports are met by id, so the first way to a record is
    the one whose ids come first.
    """
    level = {
        record: _Way((record.id,)) for record in sorted(starts, key=_by_id) if not record.grounded
    }
    reached = dict.fromkeys(level)
    while level:
        yield level
        following: dict[Record, _Way] = {}
        for record, way in level.items():
            for support in sorted(record.supports, key=_by_id):
                if not support.grounded and support not in reached:
                    reached[support] = None
                    following[support] = way.down_to(support)
        level = following


def _levels_up(
    failing: Sequence[Record], within: dict[Record, None], most: int
) -> Iterator[dict[tuple[Record, Record], _Way]]:
    """Level by level, (record, failing record) and the way between, nearest failing ones first.

    A record passes on what it met only while it has met fewer than `most`: whoever rests on it has
    as many that are no further away. It steps down to the first by id of the records that lead on.
    """
    level = {(record, record): _Way((record.id,)) for record in failing}
    met: dict[Record, dict[Record, None]] = {record: {} for record in within}
    for record in failing:
        met[record][record] = None
    while level:
        yield level
        following: dict[tuple[Record, Record], _Way] = {}
        for record, fallen in sorted(level, key=lambda pair: (pair[1].id, pair[0].id)):
            for dependent in record.dependents:
                known = met.get(dependent)
                if known is not None and fallen not in known and len(known) < most:
                    known[fallen] = None
                    following[dependent, fallen] = level[record, fallen].up_from(dependent)
        level = following


def _fall(record: Record) -> TrailEntry:
    """When and through whom the record first left good standing."""
    return next(entry for entry in record.happened(Happening.STANDING) if entry.value != "resolved")


def _failure(record: Record, fall: TrailEntry, way: _Way) -> Failure:
    return Failure(
        record=record.id,
        standing=record.standing,
        since_turn=fall.turn,
        cause=Cause(op=fall.op, by=fall.by, speaker=fall.speaker),
        path=way.ids,
        path_omitted=way.omitted,
    )


def _by_id(record: Record) -> str:
    return record.id
