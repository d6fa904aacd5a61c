"""Rows on their way into the store."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

import duckdb

from processor.engine.conversation import Conversation
from processor.engine.snapshot import SNAPSHOT_FORMAT, dump
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
        """The conversation as it is now."""
        dumped = zlib.compress(dump(conversation), COMPRESSION_LEVEL)
        conversation.spent_at_snapshot = conversation.state.model.spent
        row = (
            conversation.tenant_id,
            conversation.conversation_id,
            conversation.sequence,
            conversation.turn,
            SNAPSHOT_FORMAT,
            conversation.state_digest(),
            len(dumped),
            hashlib.sha256(dumped).hexdigest(),
            dumped,
        )
        _add(self._snapshots, row)
        self._bytes["snapshots"] += len(dumped)

    @property
    def bytes(self) -> int:
        """About what the rows hold."""
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
        """Insert all rows; one unnest per column is far quicker than a statement per row."""
        for table, columns in (
            ("log", self._log),
            ("derived", self._derived),
            ("snapshots", self._snapshots),
        ):
            if columns[0]:
                unnested = ", ".join("unnest(?)" for _ in columns)
                connection.execute(f"INSERT INTO {table} SELECT {unnested}", columns)
        for position in self._positions.values():
            connection.execute("DELETE FROM positions WHERE partition = ?", [position.partition])
            connection.execute("INSERT INTO positions VALUES (?, ?, ?)", list(position))


def _add(columns: list[list[object]], row: Sequence[object]) -> None:
    for column, value in zip(columns, row, strict=True):
        column.append(value)
