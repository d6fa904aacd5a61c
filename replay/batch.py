"""Rows on their way into the store."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

import duckdb

from processor.engine.conversation import Conversation
from processor.engine.snapshot import SNAPSHOT_FORMAT, Capture, capture, encode
from processor.engine.snapshot_delta import DELTA_FORMAT, delta, mark_of
from processor.vault.sealed import DataKey, Kind, is_sealed
from processor.vault.vault import Vault
from replay.memory_limit import BATCH_BYTES_MAX, Amount
from replay.sealing import ERASED_TYPE, seal_derived, seal_text
from replay.snapshots import has_deltas, is_delta_due, is_snapshot_due
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
    """Rows that wait to be written, column by column; sealed as they come if there is a vault.

    Everything that adds rows raises KeysAwayError and KeyDestroyedError.
    """

    def __init__(self, vault: Vault | None = None) -> None:
        self._vault = vault
        self._log: list[list[object]] = [[] for _ in range(13)]
        self._derived: list[list[object]] = [[] for _ in range(8)]
        self._snapshots: list[list[object]] = [[] for _ in range(9)]
        self._places: list[list[object]] = [[] for _ in range(6)]
        self._captured: list[tuple[tuple[object, ...], Capture | bytes, DataKey | None]] = []
        self._keys: set[str] = set()
        self._erased: list[tuple[str, str, int]] = []
        self._positions: dict[int, Position] = {}
        self._bytes = {"log": 0, "derived": 0, "snapshots": 0}

    def add_log(self, conversation: Conversation, event: LogEvent, stored: bytes) -> None:
        """An event that was folded just now, and its bytes: canonical, or sealed already."""
        digest, state_digest = conversation.digest, conversation.state_digest()
        if self._vault is not None and event.type != ERASED_TYPE:
            ids = (event.tenant_id, event.conversation_id)
            if not is_sealed(stored):
                stored = self._vault.seal(Kind.EVENT, *ids, stored)
            digest = seal_text(self._vault, ids, digest)
            state_digest = seal_text(self._vault, ids, state_digest)
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
            digest,
            state_digest,
            record_hash(stored),
            stored,
        )
        _add(self._log, row)
        self._keys.add(conversation_key(event.tenant_id, event.conversation_id))
        self._bytes["log"] += len(stored)

    def add_derived(self, event: DerivedEvent, place: int) -> None:
        """A derived event; `place` counts those of the same log event before it."""
        data = self._sealed_data(event)
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

    def _sealed_data(self, event: DerivedEvent) -> str:
        written = canonical_bytes(event)
        if self._vault is None:
            return written.decode()
        return seal_derived(self._vault, (event.tenant_id, event.conversation_id), written)

    def add_snapshot_if_due(self, conversation: Conversation) -> bool:
        """The conversation as it is now, or what changed since the last time; whether it was due.

        Turning it into bytes waits for `encode`.
        """
        if is_snapshot_due(conversation):
            self._add_captured(conversation, SNAPSHOT_FORMAT, capture(conversation))
        elif conversation.mark is not None and is_delta_due(conversation):
            self._add_captured(conversation, DELTA_FORMAT, delta(conversation, conversation.mark))
        else:
            return False
        conversation.spent_at_snapshot = conversation.state.model.spent
        conversation.mark = mark_of(conversation) if has_deltas(conversation) else None
        return True

    def _add_captured(
        self, conversation: Conversation, kind: int, captured: Capture | bytes
    ) -> None:
        row = (
            conversation.tenant_id,
            conversation.conversation_id,
            conversation.sequence,
            conversation.turn,
            kind,
            self._sealed_digest(conversation),
        )
        self._captured.append((row, captured, self._data_key(conversation)))

    def _sealed_digest(self, conversation: Conversation) -> str:
        digest = conversation.state_digest()
        if self._vault is None or conversation.is_erased:
            return digest
        ids = (conversation.tenant_id, conversation.conversation_id)
        return seal_text(self._vault, ids, digest)

    def _data_key(self, conversation: Conversation) -> DataKey | None:
        """The key for what is encoded later, when it may not be had."""
        if self._vault is None or conversation.is_erased:
            return None
        return self._vault.data_key(conversation.tenant_id, conversation.conversation_id)

    def encode(self) -> None:
        """Turn what was captured for snapshots into bytes: the part that takes long."""
        captured, self._captured = self._captured, []
        for row, each, key in captured:
            stored = each if isinstance(each, bytes) else encode(each)
            dumped = zlib.compress(stored, COMPRESSION_LEVEL)
            if key is not None:
                dumped = key.seal(Kind.SNAPSHOT, dumped)
            bytes_hash = hashlib.sha256(dumped).hexdigest()
            _add(self._snapshots, (*row, len(dumped), bytes_hash, dumped))
            self._bytes["snapshots"] += len(dumped)

    def add_place(self, event: LogEvent, position: Position) -> None:
        """Where an event stands in Kafka: right before the position."""
        _add(self._places, (*position, event.tenant_id, event.conversation_id, event.sequence))

    def drop(self, tenant_id: str, conversation_id: str, next_offset: int) -> None:
        """A worker's store keeps of a conversation only that it was erased, by the event there."""
        self._erased.append((tenant_id, conversation_id, next_offset))

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
        for erased in self._erased:
            _drop(connection, *erased)
        note_positions(connection, list(self._positions.values()))


def _drop(
    connection: duckdb.DuckDBPyConnection, tenant_id: str, conversation_id: str, next_offset: int
) -> None:
    own = "tenant_id = ? AND conversation_id = ?"
    for table, but in (
        ("log", f"AND type <> '{ERASED_TYPE}'"),
        ("derived", ""),
        ("snapshots", ""),
        ("places", f"AND next_offset < {next_offset:d}"),
    ):
        connection.execute(
            f"DELETE FROM {physical(connection, table)} WHERE {own} {but}",
            [tenant_id, conversation_id],
        )


def physical(connection: duckdb.DuckDBPyConnection, table: str) -> str:
    """The name of the table itself, where a view of sealed rows may have its plain name."""
    query = "SELECT current_database(), current_schema()"
    ((database, schema),) = connection.execute(query).fetchall()
    return f'"{str(database).replace(chr(34), chr(34) * 2)}".{schema}.{table}'


def insert(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: list[list[object]],
    unless_there: str = "",
) -> None:
    """Insert rows column by column: in one text, which costs a third; what may be long as values.

    A row is left out if the table has one that is equal in the columns `unless_there`.
    """
    table = physical(connection, table)
    described = connection.execute(f"DESCRIBE {table}").fetchall()
    written: dict[str, list[object]] = {}
    types: dict[str, list[str]] = {}
    selected: list[str] = []
    values: list[list[object]] = []
    for (name, type_, *_), column in zip(described, columns, strict=True):
        if type_ in {"BLOB", "JSON"}:
            selected.append(f'unnest(?) AS "{name}"')
            values.append(column)
        else:
            selected.append(f'unnest(texts."{name}") AS "{name}"')
            written[name], types[name] = column, [type_]
    rows = f"SELECT {', '.join(selected)} FROM (SELECT from_json_strict(?, ?) AS texts)"
    if unless_there:
        rows = f"SELECT * FROM ({rows}) ANTI JOIN {table} USING ({unless_there})"
    texts = [canonical_bytes(each).decode() for each in (written, types)]
    connection.execute(f"INSERT INTO {table} {rows}", [*values, *texts])


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
