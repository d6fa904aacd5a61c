"""The rows that an audit reads, in the order of the log, and in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, final

import duckdb

from schemas.log import LogEvent
from schemas.wire import WireError, decode_log_event

Key: TypeAlias = tuple[str, str]
"""A tenant and a conversation."""
WINDOW_EVENTS = 5_000
"""Of a long conversation, read at once."""
_FETCHED_ROWS = 500


@final
class LogRow(NamedTuple):
    """A row of `log`; the time in microseconds since 1970."""

    tenant_id: str
    conversation_id: str
    sequence: int
    turn: int
    type: str
    utterance_id: str
    speaker: str
    said_at: int
    rules_version: int
    digest: str
    state_digest: str
    record_hash: str
    event: bytes


def read_event(row: LogRow) -> LogEvent | None:
    """What the bytes of a row say, or None if they say nothing."""
    try:
        return decode_log_event(row.event)
    except WireError:
        return None


def has_own_hash(row: LogRow) -> bool:
    """Whether the bytes of the event are those that were hashed."""
    return hashlib.sha256(row.event).hexdigest() == row.record_hash


@final
class DerivedRow(NamedTuple):
    """A row of `derived`."""

    tenant_id: str
    conversation_id: str
    sequence: int
    place: int
    turn: int
    type: str
    event_id: str
    data: str


@final
class SnapshotRow(NamedTuple):
    """A row of `snapshots`."""

    tenant_id: str
    conversation_id: str
    sequence: int
    turn: int
    format: int
    state_digest: str
    size: int
    bytes_hash: str
    conversation: bytes


_ORDER = {
    "log": "tenant_id, conversation_id, sequence",
    "derived": "tenant_id, conversation_id, sequence, place",
    "snapshots": "tenant_id, conversation_id, sequence",
}
_COLUMNS = {
    "log": ", ".join(LogRow._fields).replace("said_at", "epoch_us(said_at)"),
    "derived": ", ".join(DerivedRow._fields),
    "snapshots": ", ".join(SnapshotRow._fields),
}


def conversations(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str, int]]:
    """Every (tenant, conversation, number of log events) of which there is any row."""
    return connection.execute(
        "SELECT tenant_id, conversation_id, CAST(sum(events) AS BIGINT) FROM ("
        "SELECT tenant_id, conversation_id, count(*) AS events FROM log GROUP BY ALL UNION ALL "
        "SELECT DISTINCT tenant_id, conversation_id, 0 FROM derived UNION ALL "
        "SELECT DISTINCT tenant_id, conversation_id, 0 FROM snapshots) "
        "GROUP BY ALL ORDER BY tenant_id, conversation_id"
    ).fetchall()


@final
class Rows:
    """The rows of some conversations in one table, conversation by conversation.

    `kind` is the class of the rows. `long` reads a conversation in windows; then there may be only
    one.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        kind: Any,
        table: str,
        keys: Sequence[Key],
        *,
        long: bool,
    ) -> None:
        self._connection = connection.cursor()
        self._kind = kind
        self._table = table
        self._rows: Iterator[Any] = self._windows(keys[0]) if long else self._all(keys)

    def of(self, key: Key) -> Iterator[Any]:
        """The rows of the next conversation; ask in the order of the keys, and read them all."""
        for row in self._rows:
            if row[:2] != key:
                self._rows = chain([row], self._rows)
                return
            yield row

    def _all(self, keys: Sequence[Key]) -> Iterator[Any]:
        where = "(tenant_id, conversation_id) IN (SELECT (unnest(?), unnest(?)))"
        return self._query(where, [[key[0] for key in keys], [key[1] for key in keys]])

    def _windows(self, key: Key) -> Iterator[Any]:
        own = "tenant_id = ? AND conversation_id = ?"
        first = f"SELECT min(sequence) FROM {self._table} WHERE {own}"
        ((start,),) = self._connection.execute(first, [*key]).fetchall()
        while start is not None:
            end = start + WINDOW_EVENTS
            yield from self._query(f"{own} AND sequence >= ? AND sequence < ?", [*key, start, end])
            following = self._connection.execute(f"{first} AND sequence >= ?", [*key, end])
            ((start,),) = following.fetchall()

    def _query(self, where: str, parameters: Iterable[object]) -> Iterator[Any]:
        self._connection.execute(
            f"SELECT {_COLUMNS[self._table]} FROM {self._table} WHERE {where} "
            f"ORDER BY {_ORDER[self._table]}",
            list(parameters),
        )
        while rows := self._connection.fetchmany(_FETCHED_ROWS):
            yield from map(self._kind._make, rows)


def every_log_row(connection: duckdb.DuckDBPyConnection) -> Iterator[LogRow]:
    """The whole log in the order of its writing."""
    reader = connection.cursor().execute(f"SELECT {_COLUMNS['log']} FROM log")
    while rows := reader.fetchmany(_FETCHED_ROWS):
        yield from map(LogRow._make, rows)


@final
class Ahead:
    """Rows in the order of the log, looked at one ahead."""

    def __init__(self, rows: Iterator[Any]) -> None:
        self._rows = rows
        self._next: Any = next(rows, None)

    def peek(self, sequence: int) -> Any:
        """The next row if it is of this event."""
        return self._next if self._next is not None and self._next.sequence == sequence else None

    def has_more(self) -> bool:
        """Whether there is another row."""
        return self._next is not None

    def pop_before(self, sequence: int | None) -> Any:
        """The next row if it is of an earlier event (None: of any)."""
        row = self._next
        if row is None or (sequence is not None and row.sequence >= sequence):
            return None
        self._next = next(self._rows, None)
        return row

    def take(self, sequence: int) -> list[Any]:
        """All rows of this event."""
        taken = []
        while self.peek(sequence) is not None:
            taken.append(self.pop_before(sequence + 1))
        return taken
