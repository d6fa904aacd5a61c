"""The DuckDB store of one process: logs, derived events and snapshots, written in batches.

A batch is one transaction, so a process that is killed leaves whole events or none. Reading back a
conversation takes its newest snapshot and folds the rest of its log; see `reading.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Self, final

import duckdb

from processor.engine.conversation import Conversation
from processor.engine.plausibility.bounds import Bounds
from replay.batch import Batch, MemoryLimit
from replay.errors import StoreError as StoreError
from replay.known import KnownConversations
from replay.reading import ConversationReader
from schemas.derived import DerivedEvent
from schemas.ids import conversation_key
from schemas.log import LogEvent
from schemas.wire import canonical_bytes

STORE_FORMAT = 2


def _snapshot_sequences() -> Iterator[int]:
    """8, and whenever the log has grown by half since the last: a snapshot costs O(1) per event."""
    sequence = 8
    while sequence < 2**60:
        yield sequence
        sequence += sequence // 2


SNAPSHOT_SEQUENCES = frozenset(_snapshot_sequences())


@final
class Store:
    """One open DuckDB file. Not for use by two threads at once."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._connection = _connect(path, read_only=read_only)
        self._batch = Batch()
        self._memory = None if read_only else MemoryLimit(self._connection)
        self._known = None if read_only else KnownConversations(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.flush()
        self._connection.close()

    # -- writing --------------------------------------------------------------------------------

    def append(
        self, conversation: Conversation, event: LogEvent, derived: Sequence[DerivedEvent]
    ) -> None:
        """Store an event that was just folded, and what came of it."""
        batch = self._batch
        stored = canonical_bytes(event)
        batch.add_log(conversation, event, stored)
        for place, each in enumerate(derived):
            batch.add_derived(each, place)
        key = conversation_key(event.tenant_id, event.conversation_id)
        if self._known is not None:
            self._known.add(key)
        if event.sequence in SNAPSHOT_SEQUENCES:
            batch.add_snapshot(conversation)
        if batch.is_full():
            self.flush()

    def flush(self) -> None:
        """Write what is waiting, in one transaction."""
        if self._batch.is_empty():
            return
        connection = self._connection
        try:
            if self._memory is not None:
                self._memory.make_room(self._batch.bytes)
            connection.begin()
            self._batch.write(connection)
            connection.commit()
        except duckdb.Error as error:
            raise StoreError(f"{self.path}: cannot write: {_first_line(error)}") from error
        self._batch = Batch()

    # -- reading --------------------------------------------------------------------------------

    def conversation(
        self, tenant_id: str, conversation_id: str, bounds: Bounds | None = None
    ) -> Conversation | None:
        """The conversation as its whole log leaves it, or None if there is no such log."""
        return self.conversation_at(tenant_id, conversation_id, None, bounds)

    def conversation_at(
        self,
        tenant_id: str,
        conversation_id: str,
        turn: int | None,
        bounds: Bounds | None = None,
    ) -> Conversation | None:
        """The conversation right after a turn (None: after its whole log).

        None if the log does not reach that turn. Raises StoreError if what was stored of it was
        altered.
        """
        key = conversation_key(tenant_id, conversation_id)
        if self._known is not None and key not in self._known:
            return None
        try:
            if self._batch.has(key):
                self.flush()
            reader = ConversationReader(self._connection, self.path, tenant_id, conversation_id)
            return reader.at(turn, bounds)
        except StoreError:
            self.flush()  # one damaged conversation must not cost what waits of the others
            raise

    def conversations(self) -> list[tuple[str, str, int]]:
        """Every (tenant, conversation, number of turns), in order."""
        self.flush()
        return self._connection.execute(
            "SELECT tenant_id, conversation_id, max(turn) FROM log "
            "GROUP BY ALL ORDER BY tenant_id, conversation_id"
        ).fetchall()


def _connect(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """Open the file and make sure that it is a store of this format."""
    if read_only and not path.exists():
        raise StoreError(f"{path}: no such file")
    try:
        connection = duckdb.connect(str(path), read_only=read_only)
    except duckdb.Error as error:
        raise StoreError(f"{path}: cannot open: {_first_line(error)}") from error
    try:
        connection.execute("SET TimeZone = 'UTC'")
        tables = {row[0] for row in connection.execute("SHOW TABLES").fetchall()}
        if "store" not in tables:
            if read_only or tables:
                raise StoreError(f"{path}: not a standfast store")
            connection.begin()
            connection.execute((files("replay") / "sql" / "schema.sql").read_text())
            connection.execute("INSERT INTO store VALUES (?)", [STORE_FORMAT])
            connection.commit()
        row = connection.execute("SELECT format FROM store").fetchone()
        if row is None or row[0] != STORE_FORMAT:
            raise StoreError(f"{path}: written in another store format; this is {STORE_FORMAT}")
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"{path}: cannot read: {_first_line(error)}") from error
    except StoreError:
        connection.close()
        raise
    return connection


def _first_line(error: duckdb.Error) -> str:
    return str(error).strip().splitlines()[0]
