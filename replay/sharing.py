"""Conversations on their way from one worker's store to another's.

A conversation travels as its newest snapshot and the events from there on, or as its whole log
where there is no snapshot yet: what is stored is copied, and nothing is folded on either side. The
event at which the snapshot was taken comes along, so that the other store can compare the two.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple, final

import duckdb
import orjson

from processor.engine.snapshot import SNAPSHOT_FORMAT
from processor.vault.errors import KeyDestroyedError, SealedBytesError
from processor.vault.sealed import Kind, is_sealed
from processor.vault.vault import Vault
from replay.batch import COMPRESSION_LEVEL, Position, insert, record_hash
from replay.errors import StoreError
from replay.memory_limit import Amount, MemoryLimit
from replay.sealing import ERASED_TYPE, seal_text
from schemas.ids import conversation_key

_THERE = f"""AND (NOT standfast_is_erased(tenant_id, conversation_id) OR EXISTS (
SELECT 1 FROM log WHERE log.tenant_id = places.tenant_id
AND log.conversation_id = places.conversation_id AND log.type = '{ERASED_TYPE}'))"""
"""Of a conversation whose keys are destroyed nothing is left, until the log says so too."""
PAGE_CONVERSATIONS = 64
"""Packed at once; others who need the store wait for no more."""
TAKEN_IN_BYTES = 4 * 1024 * 1024
_LENGTH_BYTES = 8


@final
class Packed(NamedTuple):
    """A conversation up to an event, as bytes."""

    tenant_id: str
    conversation_id: str
    sequence: int
    state_digest: str
    payload: bytes
    is_erased: bool = False
    """Nothing is left of it but that."""


def shareable(
    connection: duckdb.DuckDBPyConnection, partition: int, committed: int
) -> Position | None:
    """The newest place up to which the store is written and the group has committed."""
    row = connection.execute(
        "SELECT next_offset, record_hash FROM places WHERE partition = $1 AND next_offset <= "
        "least($2, (SELECT next_offset FROM positions WHERE partition = $1)) "
        "ORDER BY next_offset DESC LIMIT 1",
        [partition, committed],
    ).fetchone()
    return None if row is None else Position(partition, *row)


def conversation_count(connection: duckdb.DuckDBPyConnection, upto: Position) -> int:
    """How many conversations of the partition have events before the position."""
    rows = connection.execute(
        "SELECT count(DISTINCT (tenant_id, conversation_id)) FROM places "
        "WHERE partition = ? AND next_offset <= ?",
        [upto.partition, upto.next_offset],
    ).fetchall()
    return int(rows[0][0])


def ahead(
    connection: duckdb.DuckDBPyConnection, partition: int, start: int
) -> dict[tuple[str, str], int]:
    """Up to where the conversations are here that are here further than the partition is."""
    rows = connection.execute(
        "SELECT tenant_id, conversation_id, max(next_offset) FROM places "
        "WHERE partition = ? AND next_offset > ? GROUP BY ALL",
        [partition, start],
    ).fetchall()
    return {(tenant_id, conversation_id): reached for tenant_id, conversation_id, reached in rows}


def pack_page(
    connection: duckdb.DuckDBPyConnection,
    upto: Position,
    after: int,
    last: tuple[str, str],
    *,
    is_sealed_store: bool = False,
) -> list[Packed]:
    """The next few conversations with events between two offsets, by id. Raises StoreError."""
    keys = connection.execute(
        "SELECT tenant_id, conversation_id, max(sequence) FROM places "
        "WHERE partition = ? AND next_offset <= ? AND (tenant_id, conversation_id) > (?, ?) "
        f"{_THERE if is_sealed_store else ''} "
        "GROUP BY ALL HAVING max(next_offset) > ? ORDER BY ALL LIMIT ?",
        [upto.partition, upto.next_offset, *last, after, PAGE_CONVERSATIONS],
    ).fetchall()
    snapshots = _newest_snapshots(connection, keys)
    starts = [snapshots[key[:2]][0] if key[:2] in snapshots else 1 for key in keys]
    logs = _logs(connection, keys, starts)
    return [
        _pack(key, start, snapshots.get(key[:2]), logs.get(key[:2], []))
        for key, start in zip(keys, starts, strict=True)
    ]


def _newest_snapshots(
    connection: duckdb.DuckDBPyConnection, keys: list[tuple[str, str, int]]
) -> dict[tuple[str, str], tuple[int, int, str, bytes]]:
    rows = connection.execute(
        "SELECT s.tenant_id, s.conversation_id, s.sequence, s.turn, s.state_digest, s.bytes_hash, "
        "s.conversation FROM snapshots s JOIN (SELECT s.tenant_id, s.conversation_id, "
        "max(s.sequence) AS sequence FROM snapshots s JOIN (SELECT unnest(?) AS tenant_id, "
        "unnest(?) AS conversation_id, unnest(?) AS upto) k USING (tenant_id, conversation_id) "
        "WHERE s.sequence <= k.upto AND s.format = ? GROUP BY ALL) "
        "USING (tenant_id, conversation_id, sequence) WHERE s.format = ?",
        [*_columns(keys), SNAPSHOT_FORMAT, SNAPSHOT_FORMAT],
    ).fetchall()
    found = {}
    for tenant_id, conversation_id, sequence, turn, state_digest, bytes_hash, stored in rows:
        if hashlib.sha256(stored).hexdigest() != bytes_hash:
            raise StoreError(
                f"the snapshot of {tenant_id}/{conversation_id} at event {sequence} was altered"
            )
        found[tenant_id, conversation_id] = (sequence, turn, state_digest, stored)
    return found


def _logs(
    connection: duckdb.DuckDBPyConnection, keys: list[tuple[str, str, int]], starts: list[int]
) -> dict[tuple[str, str], list[tuple[int, int, str, str, str, bytes]]]:
    rows = connection.execute(
        "SELECT tenant_id, conversation_id, sequence, turn, digest, state_digest, record_hash, "
        "event FROM log JOIN (SELECT unnest(?) AS tenant_id, unnest(?) AS conversation_id, "
        "unnest(?) AS upto, unnest(?) AS start) USING (tenant_id, conversation_id) "
        "WHERE sequence BETWEEN start AND upto ORDER BY tenant_id, conversation_id, sequence",
        [*_columns(keys), starts],
    ).fetchall()
    logs: dict[tuple[str, str], list[tuple[int, int, str, str, str, bytes]]] = {}
    for tenant_id, conversation_id, *row in rows:
        logs.setdefault((tenant_id, conversation_id), []).append(tuple(row))
    return logs


def _columns(keys: list[tuple[str, str, int]]) -> list[list[object]]:
    return [[key[place] for key in keys] for place in range(3)]


def _pack(
    key: tuple[str, str, int],
    start: int,
    snapshot: tuple[int, int, str, bytes] | None,
    log: list[tuple[int, int, str, str, str, bytes]],
) -> Packed:
    tenant_id, conversation_id, sequence = key
    if [row[0] for row in log] != list(range(start, sequence + 1)):
        raise StoreError(f"{tenant_id}/{conversation_id}: events before {sequence} are missing")
    events = []
    for place, turn, digest, state_digest, bytes_hash, event in log:
        if record_hash(event) != bytes_hash:
            raise StoreError(f"event {place} of {tenant_id}/{conversation_id} was altered")
        events.append([turn, digest, state_digest, event.decode()])
    taken = None if snapshot is None else [snapshot[1], snapshot[2]]
    stored = b"" if snapshot is None else snapshot[3]
    told = zlib.compress(orjson.dumps([start, taken, events]), COMPRESSION_LEVEL)
    payload = len(stored).to_bytes(_LENGTH_BYTES) + stored + told
    is_erased = len(log) == 1 and orjson.loads(log[0][5])["type"] == ERASED_TYPE
    return Packed(tenant_id, conversation_id, sequence, log[-1][3], payload, is_erased)


@final
class TakenIn(NamedTuple):
    """A conversation that comes from another store, up to the position."""

    position: Position
    packed: Packed


def sealed(packed: Packed, vault: Vault) -> Packed:
    """A conversation for the shared place, where only ciphertext goes.

    Its state digest is hashed with the sealed payload, which tells nobody anything.
    """
    payload = vault.seal(Kind.CHECKPOINT, *packed[:2], packed.payload)
    return packed._replace(
        payload=payload,
        state_digest=hashlib.sha256(payload + packed.state_digest.encode()).hexdigest(),
    )


class _Rows:
    """Rows for three tables, column by column; sealed if there is a vault."""

    def __init__(self, vault: Vault | None) -> None:
        self._vault = vault
        self.log: list[tuple[object, ...]] = []
        self.snapshots: list[tuple[Any, ...]] = []
        self.places: list[tuple[object, ...]] = []
        self.bytes = 0

    def add(self, taken: TakenIn) -> None:
        """Unpack a conversation. Raises StoreError."""
        packed = taken.packed
        ids = packed[:2]
        payload = self._opened(packed)
        try:
            length = int.from_bytes(payload[:_LENGTH_BYTES])
            stored = payload[_LENGTH_BYTES : _LENGTH_BYTES + length]
            told = zlib.decompress(payload[_LENGTH_BYTES + length :])
            start, snapshot, events = orjson.loads(told)
            self.log += map(self._sealed_row, _log_rows(ids, start, events))
            if snapshot is not None:
                turn, state_digest = snapshot
                if self._vault is not None:
                    stored = self._vault.seal(Kind.SNAPSHOT, *ids, stored)
                    state_digest = seal_text(self._vault, ids, state_digest)
                bytes_hash = hashlib.sha256(stored).hexdigest()
                row = (start, turn, SNAPSHOT_FORMAT, state_digest, len(stored), bytes_hash, stored)
                self.snapshots.append((*ids, *row))
        except (ValueError, TypeError, KeyError, zlib.error) as error:
            raise StoreError(f"{'/'.join(ids)}: what was shared of it cannot be read") from error
        self.places.append((*taken.position, *ids, packed.sequence))
        self.bytes += len(stored) + len(told)

    def _opened(self, packed: Packed) -> bytes:
        if not is_sealed(packed.payload):
            return packed.payload
        name = conversation_key(packed.tenant_id, packed.conversation_id)
        if self._vault is None:
            raise StoreError(f"{name}: what was shared of it is sealed, and there is no key file")
        try:
            return self._vault.open(Kind.CHECKPOINT, *packed[:2], packed.payload)
        except SealedBytesError as changed:
            raise StoreError(f"what was shared cannot be opened: {changed}") from changed

    def _sealed_row(self, row: tuple[Any, ...]) -> tuple[object, ...]:
        *ids, sequence, turn, kind, utterance, speaker, at, rules, digest, state, _, event = row
        if self._vault is None or kind == ERASED_TYPE:
            return row
        own = (ids[0], ids[1])
        stored = self._vault.seal(Kind.EVENT, *own, event)
        digests = [seal_text(self._vault, own, each) for each in (digest, state)]
        said = (sequence, turn, kind, utterance, speaker, at, rules)
        return (*own, *said, *digests, record_hash(stored), stored)


def _log_rows(
    ids: tuple[str, str], start: int, events: list[list[Any]]
) -> Iterator[tuple[object, ...]]:
    for sequence, (turn, digest, state_digest, event) in enumerate(events, start):
        said = orjson.loads(event)
        stored = event.encode()
        yield (
            *ids,
            sequence,
            turn,
            said["type"],
            said["utterance"]["id"],
            said["speaker"],
            datetime.fromisoformat(said["at"]),
            said["rules_version"],
            digest,
            state_digest,
            record_hash(stored),
            stored,
        )


def take_in(
    connection: duckdb.DuckDBPyConnection,
    conversations: Iterable[TakenIn],
    memory: MemoryLimit,
    vault: Vault | None = None,
) -> Iterator[str]:
    """Add conversations to a store, but for what it has already; their keys, one after the other.

    One that is erased meanwhile is passed over. Raises StoreError, and KeysAwayError.
    """
    rows = _Rows(vault)
    for taken in conversations:
        try:
            rows.add(taken)
        except KeyDestroyedError:
            continue
        yield conversation_key(taken.packed.tenant_id, taken.packed.conversation_id)
        if rows.bytes >= TAKEN_IN_BYTES:
            _insert_new(connection, rows, memory)
            rows = _Rows(vault)
    _insert_new(connection, rows, memory)


def _insert_new(connection: duckdb.DuckDBPyConnection, rows: _Rows, memory: MemoryLimit) -> None:
    snapshots = sum(len(row[-1]) for row in rows.snapshots)
    log = Amount("log", len(rows.log), rows.bytes - snapshots)
    memory.make_room(rows.bytes, [log, Amount("snapshots", len(rows.snapshots), snapshots)])
    event = "tenant_id, conversation_id, sequence"
    for table, new, key in (
        ("log", rows.log, event),
        ("snapshots", rows.snapshots, f"{event}, format"),
        ("places", rows.places, event),
    ):
        if new:
            insert(connection, table, [list(column) for column in zip(*new, strict=True)], key)
