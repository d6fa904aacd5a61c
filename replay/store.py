"""The DuckDB store of one process: logs, derived events and snapshots, written in batches.

A batch is one transaction, so a process that is killed leaves whole events or none. Nothing is
committed behind the back of whoever appends: `append` commits at most what was appended before, and
only when that has become too much; everything else is `flush`. Reading back a
conversation takes its newest snapshot and folds the rest of its log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, final

import duckdb

from processor.engine.conversation import Conversation
from processor.engine.fold import Refused, advance
from processor.engine.plausibility.bounds import Bounds
from processor.engine.snapshot import SNAPSHOT_FORMAT, load
from replay.batch import Batch, Position
from replay.store_file import StoreError, Watch, connect, first_line
from schemas.derived import DerivedEvent
from schemas.ids import conversation_key
from schemas.log import LogEvent
from schemas.wire import canonical_bytes, decode_derived_event, decode_log_event

SNAPSHOT_FIRST = 8


@final
@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One event of the log as it was stored."""

    sequence: int
    turn: int
    digest: str
    state_digest: str
    record_hash: str
    event: bytes


@final
class Store:
    """One open DuckDB file. Not for use by two threads at once."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._connection = connect(path, read_only=read_only)
        self._watch = None if read_only else Watch(path)
        self._batch = Batch()
        self._snapshot_sequences: dict[str, int] = {}
        self._stored = {
            conversation_key(tenant, conversation)
            for tenant, conversation in self._connection.execute(
                "SELECT DISTINCT tenant_id, conversation_id FROM log"
            ).fetchall()
        }

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
            self._close()
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
        self._stored.add(key)
        last = self._snapshot_sequences.get(key, 0)
        if event.sequence >= max(SNAPSHOT_FIRST, last + last // 2):
            batch.add_snapshot(conversation)
            self._snapshot_sequences[key] = event.sequence

    def flush(self) -> None:
        """Write what is waiting, in one transaction."""
        if self._batch.is_empty():
            return
        assert self._watch is not None, "a store that is only read gets no events"
        self._watch.check()
        connection = self._connection
        try:
            connection.begin()
            self._batch.write(connection)
            connection.commit()
        except duckdb.Error as error:
            raise StoreError(f"{self.path}: cannot write: {first_line(error)}") from error
        self._batch = Batch()
        self._watch.renew()

    def write(self, batch: Batch) -> None:
        """Write the rows of somebody who collects them elsewhere, in one transaction."""
        waiting, self._batch = self._batch, batch
        try:
            self.flush()
        finally:
            self._batch = waiting
        self._stored.update(batch.keys())

    def positions(self, partitions: Sequence[int]) -> dict[int, Position]:
        """Up to where the store has the log of these partitions, as far as it has anything."""
        rows = self._connection.execute(
            "SELECT partition, next_offset, record_hash FROM positions"
        ).fetchall()
        return {row[0]: Position(*row) for row in rows if row[0] in partitions}

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

    def forget(self, conversation: Conversation) -> None:
        """The conversation leaves memory; it will be read again when it is needed."""
        key = conversation_key(conversation.tenant_id, conversation.conversation_id)
        self._snapshot_sequences.pop(key, None)

    def _close(self) -> None:
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
        None if the log does not reach that turn. Raises StoreError if the log does not fold.
        """
        if conversation_key(tenant_id, conversation_id) not in self._stored:
            return None
        self.flush()
        last = self._last_sequence(tenant_id, conversation_id, turn)
        if last is None:
            return None
        conversation = self._newest_snapshot(tenant_id, conversation_id, last, bounds)
        if conversation is None:
            conversation = Conversation.empty(tenant_id, conversation_id, bounds)
        for stored in self.log(tenant_id, conversation_id, conversation.sequence, last):
            refused = advance(conversation, decode_log_event(stored.event))
            if isinstance(refused, Refused):
                raise StoreError(
                    f"{self.path}: event {stored.sequence} of {tenant_id}/{conversation_id} "
                    f"does not fold: {refused.reason}"
                )
        return conversation

    def log(
        self, tenant_id: str, conversation_id: str, after: int = 0, until: int | None = None
    ) -> Iterator[StoredEvent]:
        """The stored events with after < sequence <= until, in order."""
        rows = self._connection.cursor().execute(
            "SELECT sequence, turn, digest, state_digest, record_hash, event FROM log "
            "WHERE tenant_id = ? AND conversation_id = ? AND sequence > ? "
            "AND sequence <= coalesce(?, sequence) ORDER BY sequence",
            [tenant_id, conversation_id, after, until],
        )
        while chunk := rows.fetchmany(1_000):
            for row in chunk:
                yield StoredEvent(*row)

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

    def _last_sequence(self, tenant_id: str, conversation_id: str, turn: int | None) -> int | None:
        """The last event of the log, or the event that took the turn; 0 if nothing took turn 0."""
        row = self._connection.execute(
            "SELECT max(sequence) FROM log WHERE tenant_id = ? AND conversation_id = ?"
            if turn is None
            else "SELECT min(sequence) FROM log WHERE tenant_id = ? AND conversation_id = ? "
            "AND turn = ? AND type <> 'standfast.candidate.v1'",
            [tenant_id, conversation_id, *([] if turn is None else [turn])],
        ).fetchone()
        last = None if row is None else row[0]
        return 0 if last is None and turn == 0 else last

    def _newest_snapshot(
        self, tenant_id: str, conversation_id: str, until: int, bounds: Bounds | None
    ) -> Conversation | None:
        row = self._connection.execute(
            "SELECT sequence, conversation FROM snapshots WHERE tenant_id = ? "
            "AND conversation_id = ? AND sequence <= ? AND format = ? "
            "ORDER BY sequence DESC LIMIT 1",
            [tenant_id, conversation_id, until, SNAPSHOT_FORMAT],
        ).fetchone()
        if row is None:
            return None
        try:
            conversation = load(row[1], bounds)
        except (LookupError, TypeError, ValueError, AttributeError):
            return None  # damaged; the log has everything that it had
        self._snapshot_sequences[conversation_key(tenant_id, conversation_id)] = row[0]
        return conversation
