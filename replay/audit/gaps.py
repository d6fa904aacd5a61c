"""Whether the offsets of an archive are contiguous, and what it says about itself is so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple, final

from replay.archive_batch import DELETED, EMPTY, CopiedTo, Gap, Place
from replay.divergence import Divergence, Where, changed
from schemas.topics import Cleanup, topic_at


@final
class Hole(NamedTuple):
    """Offsets of a partition, from the first to before the next, that hold no message."""

    topic: str
    partition: int
    first_offset: int
    next_offset: int


def compare_gaps(holes: Sequence[Hole], gaps: Sequence[Gap]) -> tuple[list[Divergence], list[Hole]]:
    """Compare the gaps that the archive tells of with the offsets that hold nothing.

    Returns what is wrong with the gaps, and the holes that nothing explains. Topics that are
    compacted have holes that mean nothing.
    """
    divergences = [
        changed(_where(gap), "reason", f"{DELETED} or {EMPTY}", gap.reason)
        for gap in gaps
        if gap.reason not in (DELETED, EMPTY)
    ]
    told = _joined(Hole(*gap[:4]) for gap in gaps)
    open_holes = [hole for hole in holes if hole not in told and not _is_compacted(hole.topic)]
    wrong = [gap for gap in told if gap not in holes and not _within(gap, holes)]
    for gap in wrong:
        same = next((hole for hole in open_holes if _is_nearly(hole, gap)), None)
        if same is None:
            problem = "offsets are said to be lacking that are there"
            divergences.append(Divergence(_where(gap), None, problem))
            continue
        open_holes.remove(same)
        for name, expected, actual in zip(Hole._fields, same, gap, strict=True):
            if expected != actual:
                divergences.append(changed(_where(same), name, expected, actual))
    return divergences, open_holes


def with_gaps(
    ends: Mapping[Place, CopiedTo], gaps: Sequence[Gap], copied: Container[Place]
) -> dict[Place, CopiedTo]:
    """Where partitions that were copied end, the gaps after their last messages included."""
    reached = dict(ends)
    for gap in sorted(gaps):
        place = (gap.topic, gap.partition)
        end = reached.get(place, CopiedTo()).next_offset
        if end == gap.first_offset and place in copied:
            reached[place] = CopiedTo(gap.next_offset)
    return reached


def compare_copied(
    ends: Mapping[Place, CopiedTo], rows: Sequence[tuple[Place, CopiedTo]], unsure: Iterable[Place]
) -> list[Divergence]:
    """Compare up to where partitions were copied with where their messages and gaps end.

    `unsure` are the partitions whose last message was changed itself.
    """
    divergences: list[Divergence] = []
    skipped = frozenset(unsure)
    left = list(rows)
    lost: list[tuple[Place, CopiedTo]] = []
    for place, end in ends.items():
        row = next((row for row in left if row == (place, end)), None)
        row = row or next((row for row in left if row[0] == place), None)
        if row is None:
            lost.append((place, end))
            continue
        left.remove(row)
        if place not in skipped:
            divergences += _compare_end(place, end, row[1])
    for place, end in lost:
        row = next((row for row in left if row[1] == end), None)
        if row is None:
            divergences.append(Divergence(_copied_at(place), None, "is missing"))
            continue
        left.remove(row)
        for name, expected, actual in zip(("topic", "partition"), place, row[0], strict=True):
            if expected != actual:
                divergences.append(changed(_copied_at(place), name, expected, actual))
    return divergences + _compare_empty(rows, left)


def _compare_end(place: Place, end: CopiedTo, told: CopiedTo) -> list[Divergence]:
    if told.next_offset > end.next_offset and told.message_hash != end.message_hash:
        where = Where("messages", topic=place[0], partition=place[1], offset=end.next_offset)
        problem = f"is missing, and all to offset {told.next_offset - 1}"
        return [Divergence(where, None, problem)]
    return [
        changed(_copied_at(place), name, expected, actual)
        for name, expected, actual in zip(CopiedTo._fields, end, told, strict=True)
        if expected != actual
    ]


def _compare_empty(
    rows: Sequence[tuple[Place, CopiedTo]], empty: Sequence[tuple[Place, CopiedTo]]
) -> list[Divergence]:
    """Partitions of which there is nothing: all topics have as many, and each stands once."""
    places = [place for place, _ in rows]
    counts = Counter(Counter(topic for topic, _ in places).values())
    partitions = range(counts.most_common(1)[0][0] if counts else 0)
    topics = dict.fromkeys(topic for topic, _ in places if topic_at(topic) is not None)
    absent = [
        (topic, partition)
        for topic in topics
        for partition in partitions
        if (topic, partition) not in places
    ]
    divergences: list[Divergence] = []
    for place, to in empty:
        if place[0] in topics and place[1] in partitions and places.count(place) == 1:
            divergences += _compare_end(place, CopiedTo(), to) if to != CopiedTo() else []
            continue
        own = next((each for each in absent if each[0] == place[0] or each[1] == place[1]), None)
        if own is None:
            problem = "stands twice, or there is no such partition"
            divergences.append(Divergence(_copied_at(place), None, problem))
            continue
        absent.remove(own)
        for name, expected, actual in zip(("topic", "partition"), own, place, strict=True):
            if expected != actual:
                divergences.append(changed(_copied_at(own), name, expected, actual))
    return divergences


def _joined(gaps: Iterable[Hole]) -> list[Hole]:
    """Gaps that follow each other as one."""
    joined: list[Hole] = []
    for gap in sorted(gaps):
        if joined and joined[-1][:2] == gap[:2] and joined[-1].next_offset == gap.first_offset:
            joined[-1] = joined[-1]._replace(next_offset=gap.next_offset)
        else:
            joined.append(gap)
    return joined


def _within(gap: Hole, holes: Sequence[Hole]) -> bool:
    """In a compacted topic what was once there may be gone next to a gap."""
    return _is_compacted(gap.topic) and any(
        hole[:2] == gap[:2]
        and hole.first_offset <= gap.first_offset
        and gap.next_offset <= hole.next_offset
        for hole in holes
    )


def _is_nearly(hole: Hole, gap: Hole) -> bool:
    """Whether the two differ in one number or name."""
    return sum(one != other for one, other in zip(hole, gap, strict=True)) == 1


def _where(gap: Gap | Hole) -> Where:
    return Where("gaps", topic=gap.topic, partition=gap.partition, offset=gap.first_offset)


def _copied_at(place: Place) -> Where:
    return Where("copied", topic=place[0], partition=place[1])


def _is_compacted(topic: str) -> bool:
    """Whether offsets that hold nothing mean nothing there."""
    known = topic_at(topic)
    return known is not None and known.cleanup is Cleanup.COMPACT
