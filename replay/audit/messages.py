"""Audits the messages of an archive: each has its hash, and the offsets leave nothing out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias, final

import duckdb

from replay.archive_batch import (
    ArchivedMessage,
    CopiedTo,
    Place,
    conversation_of,
    message_hash,
    message_of_row,
    row_hash,
)
from replay.audit.gaps import Hole
from replay.divergence import Divergence, Where, changed
from replay.memory_limit import ReadInPieces

WINDOW_OFFSETS = 5_000
_FETCHED_ROWS = 500
_MESSAGES = """
SELECT topic, partition, "offset", timestamp_ms, key, headers, value,
       epoch_us(timestamp), tenant_id, conversation_id, hash
FROM messages WHERE topic = ? AND partition = ? AND "offset" >= ? AND "offset" < ?
ORDER BY "offset"
"""
_NEXT = 'SELECT min("offset") FROM messages WHERE topic = ? AND partition = ? AND "offset" >= ?'
_GAPS = "SELECT first_offset, next_offset FROM gaps WHERE topic = ? AND partition = ?"
_CALENDAR_MS_MAX = 253_402_300_799_999
Offset: TypeAlias = tuple[str, int, int]


@final
class Forged(NamedTuple):
    """A message that does not have the hash stored with it."""

    message: ArchivedMessage
    hash: str


@final
@dataclass(slots=True)
class MessageFindings:
    """What the audit of one partition, or of several, found.

    `holes` are offsets without a message; `ends` says where each partition ends, in its messages.
    Whether that is right depends on the rest of the archive; see `gaps.py`.
    """

    divergences: list[Divergence] = field(default_factory=list)
    forged: list[Forged] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    ends: dict[Place, CopiedTo] = field(default_factory=dict)
    messages: int = 0

    def absorb(self, other: MessageFindings) -> None:
        """Add what was found elsewhere."""
        self.divergences += other.divergences
        self.forged += other.forged
        self.holes += other.holes
        self.ends |= other.ends
        self.messages += other.messages


@final
class _Row(NamedTuple):
    message: ArchivedMessage
    timestamp_us: int | None
    tenant_id: str | None
    conversation_id: str | None
    hash: str


def audit_partition(connection: duckdb.DuckDBPyConnection, place: Place) -> MessageFindings:
    """Read every message of a partition in the order of its offsets.

    A message without its hash may belong anywhere: it counts where it is the next, or the next
    after a gap.
    """
    findings = MessageFindings()
    gaps = connection.execute(_GAPS, [*place]).fetchall()
    following = 0
    for row in _rows(connection, place):
        findings.messages += 1
        message = row.message
        is_forged = row_hash(message) != row.hash
        if is_forged:
            findings.forged.append(Forged(message, row.hash))
        else:
            findings.divergences += _compare_columns(row)
        fits = message.offset == following or (following, message.offset) in gaps
        if fits or not is_forged:
            if message.offset > following:
                findings.holes.append(Hole(*place, following, message.offset))
            elif message.offset < following:
                problem = "stands twice"
                findings.divergences.append(Divergence(where_of(message), None, problem))
                continue
            following = message.offset + 1
            findings.ends[place] = CopiedTo(following, message_hash(message))
    return findings


def where_of(message: ArchivedMessage) -> Where:
    """The position of a message."""
    place = (message.topic, message.partition, message.offset)
    return where_at(*place)


def where_at(topic: str, partition: int, offset: int, table: str = "messages") -> Where:
    """A position in a topic."""
    return Where(table, topic=topic, partition=partition, offset=offset)


@final
class Settled(NamedTuple):
    """What to report of messages that lack their hash, and which offsets are theirs or nobody's."""

    divergences: list[Divergence]
    found: list[Offset]
    lacking: list[Offset]


def settle_forged(forged: Iterable[Forged], lacking: Iterable[Offset]) -> Settled:
    """Which of the messages without their hash belong to offsets that hold nothing."""
    divergences: list[Divergence] = []
    found: list[Offset] = []
    left = list(lacking)
    for message, stored in forged:
        own = next((at for at in left if row_hash(_moved(message, at)) == stored), None)
        if own is None:
            problem = "was changed: what the broker gave has another hash"
            divergences.append(
                Divergence(where_of(message), None, problem, "", stored, row_hash(message))
            )
            continue
        left.remove(own)
        found.append(own)
        for name, expected, actual in zip(
            ("topic", "partition", "offset"), own, message[:3], strict=True
        ):
            if expected != actual:
                divergences.append(changed(where_at(*own), name, expected, actual))
    return Settled(divergences, found, left)


def _moved(message: ArchivedMessage, at: Offset) -> ArchivedMessage:
    return message._replace(topic=at[0], partition=at[1], offset=at[2])


def _rows(connection: duckdb.DuckDBPyConnection, place: Place) -> Iterator[_Row]:
    cursor = connection.cursor()
    start: int | None
    ((start,),) = cursor.execute(_NEXT, [*place, -(2**63)]).fetchall()
    pieces = ReadInPieces(cursor, WINDOW_OFFSETS)
    while start is not None:
        rows = pieces.read(partial(_first_rows, cursor, place, start))
        end = start + pieces.rows
        while rows:
            for row in rows:
                yield _Row(message_of_row(row[:7]), *row[7:])
            rows = cursor.fetchmany(_FETCHED_ROWS)
        ((start,),) = cursor.execute(_NEXT, [*place, end]).fetchall()


def _first_rows(
    cursor: duckdb.DuckDBPyConnection, place: Place, start: int, width: int
) -> list[tuple[Any, ...]]:
    """Those of so many offsets that are fetched at once; the cursor has the others."""
    return cursor.execute(_MESSAGES, [*place, start, start + width]).fetchmany(_FETCHED_ROWS)


def _compare_columns(row: _Row) -> Iterator[Divergence]:
    """The columns that repeat what the message says."""
    message = row.message
    ms = message.timestamp_ms
    tenant_id, conversation_id = conversation_of(message.key)
    for name, expected, actual in (
        ("timestamp", ms * 1_000 if 0 <= ms <= _CALENDAR_MS_MAX else None, row.timestamp_us),
        ("tenant_id", tenant_id, row.tenant_id),
        ("conversation_id", conversation_id, row.conversation_id),
    ):
        if expected != actual:
            yield changed(where_of(message), name, expected, actual)
