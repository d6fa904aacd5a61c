"""The DuckDB store of one process: logs, derived events and snapshots, written in batches.

A batch is one transaction, so a process that is killed leaves whole events or none. Nothing is
committed behind the back of whoever appends: `append` commits at most what was appended before, and
only when that has become too much; everything else is `flush`. Reading back a
conversation takes its newest snapshot and folds the rest of its log; see `reading.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, final

import duckdb

from processor.engine.conversation import Conversation
from processor.engine.plausibility.bounds import Bounds
from processor.vault.vault import Vault
from replay import sharing
from replay.batch import Batch, Position, note_positions, physical
from replay.errors import NotSealedError, StoreError
from replay.known import KnownConversations
from replay.memory_limit import Amount, MemoryLimit
from replay.opened import opened
from replay.reading import ConversationReader
from replay.sealing import add_views, read_whole, required, vault_for
from replay.store_file import (
    SEALED_FORMAT,
    STORE_FORMAT,
    Watch,
    connect,
    first_line,
    is_sealed_store,
    view_statements,
)
from schemas.derived import DerivedEvent
from schemas.ids import conversation_key
from schemas.log import CandidateAppended, LogEvent
from schemas.wire import canonical_bytes, decode_derived_event, decode_log_event

Answer = TypeVar("Answer")


@final
class Store:
    """One open DuckDB file, or a folder of segments to be read. Not for two threads at once."""

    def __init__(self, path: Path, *, read_only: bool = False, vault: Vault | None = None) -> None:
        self.path = path
        self.vault = vault or vault_for(path)
        self._connection = opened(path) if read_only else self._written(path)
        self._watch = None if read_only else Watch(path)
        self._batch = Batch(self.vault)
        try:
            self._memory = None if read_only else MemoryLimit(self._connection)
            self._known = None if read_only else KnownConversations(self._connection)
            if not read_only:
                self._show_opened(self._connection)
        except duckdb.Error as error:
            self.close()
            raise StoreError(f"{path}: cannot read: {first_line(error)}") from error

    def _written(self, path: Path) -> duckdb.DuckDBPyConnection:
        """The file, to be written: with the keys that it was begun with, or without any."""
        wanted = STORE_FORMAT if self.vault is None else SEALED_FORMAT
        connection = connect(path, read_only=False, new_format=wanted)
        is_sealed = is_sealed_store(connection)
        if is_sealed == (self.vault is not None):
            return connection
        connection.close()
        if is_sealed:
            required(None, path)
        raise NotSealedError(f"{path}: was begun without a key file; name another, or go without")

    def _show_opened(self, connection: duckdb.DuckDBPyConnection) -> None:
        if self.vault is not None:
            stored = physical(connection, "")
            add_views(connection, self.vault, stored, temporary=True, is_archive=False)
            for statement in view_statements():
                connection.execute(statement.replace(" VIEW ", " TEMP VIEW "))

    def is_closed(self, tenant_id: str, conversation_id: str) -> bool:
        """Whether the conversation is erased, as far as its keys say."""
        return self.vault is not None and self.vault.is_destroyed(tenant_id, conversation_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.flush()
                if self._watch is not None:
                    self._watch.check()
        finally:
            self.close()
        if kind is None and self._watch is not None:
            self._watch.renew()

    # -- writing --------------------------------------------------------------------------------

    def append(
        self, conversation: Conversation, event: LogEvent, derived: Sequence[DerivedEvent]
    ) -> None:
        """Store an event that was just folded, and what came of it."""
        if self._batch.is_full():
            self.flush()
        batch = self._batch
        stored = canonical_bytes(event)
        batch.add_log(conversation, event, stored)
        for place, each in enumerate(derived):
            batch.add_derived(each, place)
        key = conversation_key(event.tenant_id, event.conversation_id)
        if self._known is not None:
            self._known.add(key)
        if batch.add_snapshot_if_due(conversation):
            batch.encode()

    def flush(self) -> None:
        """Write what is waiting, in one transaction."""
        if self._batch.is_empty():
            return
        self._batch.encode()
        self.transact(self._batch.write, self._batch.amounts())
        self._batch = Batch(self.vault)

    def transact(
        self, work: Callable[[duckdb.DuckDBPyConnection], None], amounts: Sequence[Amount]
    ) -> None:
        """Do what writes these amounts in one transaction. Raises StoreError."""
        assert self._watch is not None, "a store that is only read gets no events"
        self._watch.check()
        connection = self._connection
        try:
            if self._memory is not None:
                self._memory.make_room(sum(each.bytes for each in amounts), amounts)
            connection.begin()
            work(connection)
            connection.commit()
        except duckdb.Error as error:
            raise StoreError(f"{self.path}: cannot write: {first_line(error)}") from error
        self._watch.renew()

    def write(self, batch: Batch) -> None:
        """Write the rows of somebody who collects them elsewhere, in one transaction."""
        waiting, self._batch = self._batch, batch
        try:
            self.flush()
        finally:
            self._batch = waiting
        if self._known is not None:
            for key in batch.conversations():
                self._known.add(key)

    def positions(self, partitions: Sequence[int]) -> dict[int, Position]:
        """Up to where the store has the log of these partitions, as far as it has anything."""
        rows = self._connection.execute(
            "SELECT partition, next_offset, record_hash FROM positions"
        ).fetchall()
        return {row[0]: Position(*row) for row in rows if row[0] in partitions}

    def rows(self, query: str, *parameters: object) -> list[Any]:
        """The answer to a query about other tables of the file. Raises StoreError."""
        return self.read(lambda connection: connection.execute(query, list(parameters)).fetchall())

    def read(self, work: Callable[[duckdb.DuckDBPyConnection], Answer]) -> Answer:
        """Ask other tables of the file. Raises StoreError."""
        try:
            return work(self._connection)
        except duckdb.Error as error:
            raise StoreError(f"{self.path}: cannot read: {first_line(error)}") from error

    def shareable(self, partition: int, committed: int) -> Position | None:
        """Up to where this partition may be published: what is written and committed."""
        return sharing.shareable(self._connection, partition, committed)

    def packed(self, upto: Position, after: int, last: tuple[str, str]) -> list[sharing.Packed]:
        """The next few conversations after `last` with events between two offsets.

        Raises StoreError if something of it was altered.
        """
        is_sealed = self.vault is not None
        page = read_whole(
            self.vault,
            lambda: sharing.pack_page(
                self._connection, upto, after, last, is_sealed_store=is_sealed
            ),
        )
        if self.vault is None:
            return page
        return [each if each.is_erased else sharing.sealed(each, self.vault) for each in page]

    def conversation_count(self, upto: Position) -> int:
        """How many conversations of the partition have events before the position."""
        return sharing.conversation_count(self._connection, upto)

    def ahead(self, partition: int, start: int) -> dict[tuple[str, str], int]:
        """Up to where the conversations are here that are here further than the partition is."""
        return sharing.ahead(self._connection, partition, start)

    def take_in(self, position: Position, conversations: Iterable[sharing.TakenIn]) -> None:
        """Add what others share, in one transaction; the partition is here up to the position.

        Raises StoreError, and then nothing was added.
        """
        self.flush()
        assert self._watch is not None, "a store that is only read takes nothing in"
        assert self._memory is not None
        assert self._known is not None
        connection = self._connection
        connection.begin()
        try:
            for key in sharing.take_in(connection, conversations, self._memory, self.vault):
                self._known.add(key)
            note_positions(connection, [position])
            connection.commit()
        except (duckdb.Error, StoreError) as error:
            connection.rollback()
            raise StoreError(f"{self.path}: cannot take in a checkpoint: {error}") from error
        self._watch.renew()

    def derived_from(self, event: LogEvent) -> tuple[DerivedEvent, ...] | None:
        """What came of an event, in order; None if another one is stored in its place."""
        place = [event.tenant_id, event.conversation_id, event.sequence]
        row = self._connection.execute(
            "SELECT event FROM log WHERE tenant_id = ? AND conversation_id = ? AND sequence = ?",
            place,
        ).fetchone()
        if row is None or row[0] != canonical_bytes(event):
            return None
        rows = self._connection.execute(
            "SELECT type, data FROM derived WHERE tenant_id = ? AND conversation_id = ? "
            "AND sequence = ? ORDER BY place",
            place,
        ).fetchall()
        return tuple(decode_derived_event(kind, data.encode()) for kind, data in rows)

    def recorded(
        self, tenant_id: str, conversation_id: str, utterance_id: str
    ) -> tuple[LogEvent, tuple[DerivedEvent, ...]] | None:
        """The event that an utterance became, and what came of it; the first, if it has two.

        None for a draft that came with a shared checkpoint: its verdicts did not.
        """
        row = self._connection.execute(
            "SELECT event FROM log WHERE tenant_id = ? AND conversation_id = ? "
            "AND utterance_id = ? ORDER BY sequence LIMIT 1",
            [tenant_id, conversation_id, utterance_id],
        ).fetchone()
        if row is None:
            return None
        event = decode_log_event(row[0])
        derived = self.derived_from(event) or ()
        if isinstance(event, CandidateAppended) and not derived:
            return None
        return event, derived

    def close(self) -> None:
        """Let go of the file, and of what waits to be written."""
        try:
            self._connection.close()
        except duckdb.Error as error:
            raise StoreError(f"{self.path}: cannot close: {first_line(error)}") from error

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

        Turn 0 is what a setup leaves, or nothing at all; what was only checked is not part of it.
        None if the log does not reach that turn. Raises StoreError if what was stored of it was
        altered.
        """
        key = conversation_key(tenant_id, conversation_id)
        if self._known is not None and key not in self._known:
            return None
        try:
            if self._batch.has(key):
                self.flush()
            return read_whole(
                self.vault, lambda: self.reader(tenant_id, conversation_id).at(turn, bounds)
            )
        except StoreError:
            self.flush()  # one damaged conversation must not cost what waits of the others
            raise

    def reader(self, tenant_id: str, conversation_id: str) -> ConversationReader:
        """Reads one conversation event by event; what waits to be written is not seen."""
        return ConversationReader(self._connection, self.path, tenant_id, conversation_id)

    def beside(self) -> duckdb.DuckDBPyConnection:
        """A connection for another thread, which sees what was written when it asks."""
        beside = self._connection.cursor()
        self._show_opened(beside)
        return beside

    def may_have(self, tenant_id: str, conversation_id: str) -> bool:
        """False if it certainly has no event of the conversation; asks no disk."""
        return self._known is None or conversation_key(tenant_id, conversation_id) in self._known

    def conversations(self) -> list[tuple[str, str, int]]:
        """Every (tenant, conversation, number of turns), in order."""
        self.flush()
        return self._connection.execute(
            "SELECT tenant_id, conversation_id, max(turn) FROM log "
            "GROUP BY ALL ORDER BY tenant_id, conversation_id"
        ).fetchall()

    def any_ungrounded(self, drafts: Sequence[tuple[str, str, str]]) -> bool:
        """Whether a claim of one of the (tenant, conversation, candidate) was found ungrounded."""
        self.flush()
        row = self._connection.execute(
            "SELECT 1 FROM verdicts WHERE outcome = 'ungrounded' AND candidate IS NOT NULL AND "
            "(tenant_id, conversation_id, candidate) IN "
            "(SELECT (unnest(?), unnest(?), unnest(?))) LIMIT 1",
            [list(column) for column in zip(*drafts, strict=True)],
        ).fetchone()
        return row is not None
