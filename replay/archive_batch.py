"""Messages on their way into the archive."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import duckdb

from replay.batch import BATCH_EVENTS_MAX
from replay.memory_limit import BATCH_BYTES_MAX, ReadInPieces
from schemas.topics import KEY_PATTERN

Place: TypeAlias = tuple[str, int]
"""A topic and a partition."""
Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

DELETED = "deleted"
"""A gap before the start of the log: its retention deleted what was there."""
EMPTY = "empty"
"""A gap inside the log: no message was there, as where a transaction ends."""

_ROW_BYTES = 100
_KEY = re.compile(KEY_PATTERN)
PAGE_MESSAGES = 2_000
_SELECT_PAGE = """
SELECT topic, partition, "offset", timestamp_ms, key, headers, value FROM messages
WHERE topic = ? AND partition = ? AND "offset" >= ? AND "offset" < ?
ORDER BY "offset"
"""
_INSERT = """
INSERT INTO messages
SELECT topic, partition, "offset", ms,
       CASE WHEN ms BETWEEN 0 AND 253402300799999 THEN make_timestamptz(ms * 1000) END,
       tenant_id, conversation_id, key, headers, value, hash
FROM (SELECT unnest(?) AS topic, unnest(?) AS partition, unnest(?) AS "offset", unnest(?) AS ms,
             unnest(?) AS tenant_id, unnest(?) AS conversation_id, unnest(?) AS key,
             unnest(?) AS headers, unnest(?) AS value, unnest(?) AS hash)
"""


@final
class ArchivedMessage(NamedTuple):
    """A message as the broker has it. `timestamp_ms` is -1 where it has none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    headers: Headers
    value: bytes | None


def message_of_row(row: tuple[Any, ...]) -> ArchivedMessage:
    """A message from its columns, in the order of `ArchivedMessage`."""
    topic, partition, offset, timestamp_ms, key, headers, value = row
    named = tuple((header["name"], header["value"]) for header in headers)
    return ArchivedMessage(topic, partition, offset, timestamp_ms, key, named, value)


def page_of(
    connection: duckdb.DuckDBPyConnection, place: Place, offset: int
) -> tuple[list[ArchivedMessage], int]:
    """The messages of a partition at the next few offsets, and the offset after these.

    Raises duckdb.Error.
    """
    pieces = ReadInPieces(connection, PAGE_MESSAGES)
    rows = pieces.read(
        lambda count: connection.execute(_SELECT_PAGE, [*place, offset, offset + count]).fetchall()
    )
    return [message_of_row(row) for row in rows], offset + pieces.rows


@final
class CopiedTo(NamedTuple):
    """Up to where a partition is copied, and the hash of the message before that."""

    next_offset: int = 0
    message_hash: str = ""


@final
class Gap(NamedTuple):
    """Offsets from `first_offset` to before `next_offset` that the archive does not have."""

    topic: str
    partition: int
    first_offset: int
    next_offset: int
    reason: str


def message_hash(message: ArchivedMessage) -> str:
    """SHA-256 of what tells a message from one at the same place of another log."""
    hashed = hashlib.sha256()
    for part in (b"%d" % message.timestamp_ms, message.key, message.value):
        hashed.update(b"-" if part is None else b"%d:" % len(part) + part)
    return hashed.hexdigest()


def row_hash(message: ArchivedMessage) -> str:
    """SHA-256 of everything that a message says, its place and headers included."""
    parts = [message.topic.encode(), b"%d" % message.partition, b"%d" % message.offset]
    parts += [message_hash(message).encode()]
    for name, value in message.headers:
        parts += [name.encode(), b"-" if value is None else b"+" + value]
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(b"%d:" % len(part) + part)
    return hashed.hexdigest()


@final
class MessageBatch:
    """Messages that wait to be written, in order; `bytes` is about what they hold."""

    def __init__(self) -> None:
        self.messages: list[ArchivedMessage] = []
        self._copied: dict[Place, CopiedTo] = {}
        self._gaps: list[Gap] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self.messages)

    def add(self, message: ArchivedMessage) -> None:
        """The next message of its partition."""
        self.messages.append(message)
        self.bytes += _ROW_BYTES + len(message.key or b"") + len(message.value or b"")
        self.bytes += sum(len(name) + len(value or b"") for name, value in message.headers)

    def reach(self, place: Place, copied: CopiedTo) -> None:
        """The partition is copied up to here, although no message says so."""
        self._copied[place] = copied

    def add_gap(self, gap: Gap) -> None:
        """Offsets that will not come."""
        self._gaps.append(gap)

    def gaps(self) -> Sequence[Gap]:
        """The gaps that were added."""
        return self._gaps

    def copied(self) -> Mapping[Place, CopiedTo]:
        """Up to where this batch brings each of its partitions."""
        last = {(message.topic, message.partition): message for message in self.messages}
        reached = {
            place: CopiedTo(message.offset + 1, message_hash(message))
            for place, message in last.items()
        }
        return self._copied | reached

    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not (self.messages or self._copied or self._gaps)

    def is_full(self) -> bool:
        """Whether it is time to write."""
        return len(self) >= BATCH_EVENTS_MAX or self.bytes >= BATCH_BYTES_MAX

    def write(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Insert all rows, and say up to where their partitions are copied."""
        if self.messages:
            rows = map(_row, self.messages)
            connection.execute(_INSERT, [list(column) for column in zip(*rows, strict=True)])
        if self._gaps:
            _insert(connection, "gaps", self._gaps)
        reached = self.copied()
        if reached:
            connection.execute(
                "DELETE FROM copied WHERE (topic, partition) IN (SELECT (unnest(?), unnest(?)))",
                [[topic for topic, _ in reached], [partition for _, partition in reached]],
            )
            _insert(connection, "copied", [(*place, *to) for place, to in reached.items()])


def _insert(
    connection: duckdb.DuckDBPyConnection, table: str, rows: Iterable[tuple[object, ...]]
) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    unnested = ", ".join("unnest(?)" for _ in columns)
    connection.execute(f"INSERT INTO {table} SELECT {unnested}", columns)


def _row(message: ArchivedMessage) -> tuple[object, ...]:
    headers = [{"name": name, "value": value} for name, value in message.headers]
    place = (message.topic, message.partition, message.offset, message.timestamp_ms)
    ids = conversation_of(message.key)
    return (*place, *ids, message.key, headers, message.value, row_hash(message))


def conversation_of(key: bytes | None) -> tuple[str | None, str | None]:
    """Tenant and conversation of a key; nothing if it is no conversation's."""
    try:
        text = (key or b"").decode()
    except UnicodeDecodeError:
        return None, None
    if not _KEY.fullmatch(text):
        return None, None
    tenant_id, _, conversation_id = text.partition("/")
    return tenant_id, conversation_id
