"""Audits what an archive holds beside its log: messages, gaps, and how far it was copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import duckdb

from replay.archive_batch import CopiedTo, Gap, Place
from replay.audit.agreement import Offset, compare_log, compare_positions, compare_sent
from replay.audit.findings import Findings
from replay.audit.gaps import Hole, compare_copied, compare_gaps, with_gaps
from replay.audit.messages import MessageFindings, settle_forged, where_at
from replay.divergence import Divergence

OFFSETS_TOLD_MAX = 1_000
"""Of offsets that are missing in a row."""


def partitions(connection: duckdb.DuckDBPyConnection) -> list[Place]:
    """Every topic and partition of which there is a message."""
    return connection.execute(
        "SELECT DISTINCT topic, partition FROM messages ORDER BY ALL"
    ).fetchall()


def compare_archive(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    findings: Findings,
    messages: MessageFindings,
) -> Iterator[Divergence]:
    """What is wrong with an archive as a whole, once its rows and its log were looked at."""
    rows = connection.execute("SELECT topic, partition, next_offset, message_hash FROM copied")
    copied = [((row[0], row[1]), CopiedTo(*row[2:])) for row in rows.fetchall()]
    gaps = [
        Gap(*row)
        for row in connection.execute(
            "SELECT topic, partition, first_offset, next_offset, reason FROM gaps"
        ).fetchall()
    ]
    unsure: set[Offset] = {each.message[:3] for each in messages.forged}
    known = {place for place, _ in copied}
    forged = {place for place, end in messages.ends.items() if _is_forged(place, end, messages)}
    for place in forged - known:
        del messages.ends[place]
    ends = with_gaps(messages.ends, gaps, known)
    told, holes = compare_gaps([*messages.holes, *_after_the_last(ends, messages.ends)], gaps)
    yield from told
    cut = [offset for place, to in copied for offset in _cut_off(place, ends.get(place), to)]
    settled = settle_forged(messages.forged, [*_offsets(holes), *cut])
    yield from settled.divergences
    unsure |= set(settled.found)
    for at in settled.lacking:
        if at not in cut:
            yield Divergence(where_at(*at), None, "is missing")
    yield from compare_copied(ends, copied, _without_last(ends, unsure))
    yield from compare_positions(connection, unsure)
    yield from compare_log(connection, path, unsure, findings)
    folded = dict(connection.execute("SELECT partition, next_offset FROM positions").fetchall())
    behind = {
        partition
        for (topic, partition), to in copied
        if topic == "operations" and to.next_offset > folded.get(partition, 0)
    }
    yield from compare_sent(connection, unsure, behind, findings)


def _is_forged(place: Place, end: CopiedTo, messages: MessageFindings) -> bool:
    """Whether a partition ends with its first message, and that lacks its hash."""
    return end.next_offset == 1 and any(each.message[:3] == (*place, 0) for each in messages.forged)


def _after_the_last(
    ends: Mapping[Place, CopiedTo], last: Mapping[Place, CopiedTo]
) -> Iterator[Hole]:
    """Offsets that hold nothing after the last message of a partition."""
    for place, end in ends.items():
        first = last.get(place, CopiedTo()).next_offset
        if first < end.next_offset:
            yield Hole(*place, first, end.next_offset)


def _offsets(holes: Iterable[Hole]) -> Iterator[Offset]:
    """The offsets of holes, of a large one the first."""
    for topic, partition, first, following in holes:
        for offset in range(first, min(following, first + OFFSETS_TOLD_MAX)):
            yield topic, partition, offset


def _cut_off(place: Place, end: CopiedTo | None, told: CopiedTo) -> Iterator[Offset]:
    """The offsets that were copied after what is now the last message of a partition."""
    first = 0 if end is None else end.next_offset
    if end is None or told.message_hash != end.message_hash:
        yield from _offsets([Hole(*place, first, told.next_offset)])


def _without_last(ends: Mapping[Place, CopiedTo], unsure: Iterable[Offset]) -> set[Place]:
    """The partitions whose last message is not known."""
    return {
        (topic, partition)
        for topic, partition, offset in unsure
        if offset >= ends.get((topic, partition), CopiedTo()).next_offset - 1
    }
