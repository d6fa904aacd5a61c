"""Rows on their way into the store."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

import duckdb

from processor.engine.conversation import Conversation
from processor.engine.snapshot import SNAPSHOT_FORMAT, Capture, capture, encode
from replay.memory_limit import BATCH_BYTES_MAX, Amount
from schemas.derived import DerivedEvent
from schemas.ids import conversation_key
from schemas.log import LogEvent
from schemas.wire import canonical_bytes

BATCH_EVENTS_MAX = 2_000
COMPRESSION_LEVEL = 1
"""Of snapshots: DuckDB reads two thousand of them to find one, so five times fewer bytes matter."""


@final
class Position(NamedTuple):
    """A place in a partition's log: the next offset, and the hash of the record before it."""

    partition: int
    next_offset: int
    record_hash: str


def record_hash(stored: bytes) -> str:
    """SHA-256 of the bytes of a stored event."""
    return hashlib.sha256(stored).hexdigest()


@final
class Batch:
    """Rows that wait to be written, column by column."""

    def __init__(self) -> None:
        self._log: list[list[object]] = [[] for _ in range(13)]
        self._derived: list[list[object]] = [[] for _ in range(8)]
        self._snapshots: list[list[object]] = [[] for _ in range(9)]
        self._places: list[list[object]] = [[] for _ in range(6)]
        self._captured: list[tuple[tuple[object, ...], Capture]] = []
        self._keys: set[str] = set()
        self._positions: dict[int, Position] = {}
        self._bytes = {"log": 0, "derived": 0, "snapshots": 0}

    def add_log(self, conversation: Conversation, event: LogEvent, stored: bytes) -> None:
        """An event that was folded just now, and its canonical bytes."""
        row = (
            event.tenant_id,
            event.conversation_id,
            event.sequence,
            conversation.turn,
            event.type,
            event.utterance.id,
            event.speaker,
            event.at,
            event.rules_version,
            conversation.digest,
            conversation.state_digest(),
            record_hash(stored),
            stored,
        )
        _add(self._log, row)
        self._keys.add(conversation_key(event.tenant_id, event.conversation_id))
        self._bytes["log"] += len(stored)

    def add_derived(self, event: DerivedEvent, place: int) -> None:
        """A derived event; `place` counts those of the same log event before it."""
        data = canonical_bytes(event).decode()
        row = (
            event.tenant_id,
            event.conversation_id,
            event.sequence,
            place,
            event.turn,
            event.TYPE,
            event.event_id,
            data,
        )
        _add(self._derived, row)
        self._bytes["derived"] += len(data)

    def add_snapshot(self, conversation: Conversation) -> None:
        """The conversation as it is now; turning it into bytes waits for `encode`."""
        conversation.spent_at_snapshot = conversation.state.model.spent
        row = (
            conversation.tenant_id,
            conversation.conversation_id,
            conversation.sequence,
            conversation.turn,
            SNAPSHOT_FORMAT,
            conversation.state_digest(),
        )
        self._captured.append((row, capture(conversation)))

    def encode(self) -> None:
        """Turn what was captured for snapshots into bytes: the part that takes long."""
        captured, self._captured = self._captured, []
        for row, each in captured:
            dumped = zlib.compress(encode(each), COMPRESSION_LEVEL)
            bytes_hash = hashlib.sha256(dumped).hexdigest()
            _add(self._snapshots, (*row, len(dumped), bytes_hash, dumped))
            self._bytes["snapshots"] += len(dumped)

    def add_place(self, event: LogEvent, position: Position) -> None:
        """Where an event stands in Kafka: right before the position."""
        _add(self._places, (*position, event.tenant_id, event.conversation_id, event.sequence))

    @property
    def bytes(self) -> int:
        """About what the rows hold, but for what is not encoded yet."""
        return sum(self._bytes.values())

    def amounts(self) -> list[Amount]:
        """The same by table."""
        counts = {"log": self._log, "derived": self._derived, "snapshots": self._snapshots}
        return [Amount(name, len(counts[name][0]), size) for name, size in self._bytes.items()]

    def reach(self, position: Position) -> None:
        """With this batch the store has a partition's log up to here."""
        self._positions[position.partition] = position

    def conversations(self) -> Iterable[str]:
        """The keys of the conversations of which events wait."""
        return self._keys

    def has(self, key: str) -> bool:
        """Whether events of this conversation wait."""
        return key in self._keys

    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._log[0] and not self._positions

    def is_full(self) -> bool:
        """Whether it is time to write."""
        return len(self._log[0]) >= BATCH_EVENTS_MAX or self.bytes >= BATCH_BYTES_MAX

    def write(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Insert all rows."""
        for table, columns in (
            ("log", self._log),
            ("derived", self._derived),
            ("snapshots", self._snapshots),
            ("places", self._places),
        ):
            if columns[0]:
                insert(connection, table, columns)
        note_positions(connection, list(self._positions.values()))


def insert(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: list[list[object]],
    unless_there: str = "",
) -> None:
    """Insert rows column by column; one unnest each is far quicker than a statement per row.

    A row is left out if the table has one that is equal in the columns `unless_there`.
    """
    unnested = ", ".join("unnest(?)" for _ in columns)
    if not unless_there:
        connection.execute(f"INSERT INTO {table} SELECT {unnested}", columns)
        return
    names = [name for name, *_ in connection.execute(f"DESCRIBE {table}").fetchall()]
    named = ", ".join(f"unnest(?) AS {name}" for name in names)
    connection.execute(
        f"INSERT INTO {table} SELECT * FROM (SELECT {named}) ANTI JOIN {table} "
        f"USING ({unless_there})",
        columns,
    )


def note_positions(connection: duckdb.DuckDBPyConnection, positions: Sequence[Position]) -> None:
    """The store has the logs of these partitions up to here."""
    columns: list[list[object]] = [list(column) for column in zip(*positions, strict=True)]
    if columns:
        connection.execute(
            "DELETE FROM positions WHERE partition IN (SELECT unnest(?))", columns[:1]
        )
        insert(connection, "positions", columns)


def _add(columns: list[list[object]], row: Sequence[object]) -> None:
    for column, value in zip(columns, row, strict=True):
        column.append(value)
