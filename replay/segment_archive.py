"""An archive that is written as segments while it is read.

What comes is gathered in memory and published together: its segments, and then the manifest, which
also says up to where the topics are copied. The topics themselves keep what is not published yet,
so a process that is killed copies that once more and has lost nothing and doubled nothing.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, final

import duckdb

from processor.engine.conversation import Conversation
from replay.archive_batch import (
    ArchivedMessage,
    CopiedTo,
    MessageBatch,
    Place,
    page_of,
)
from replay.batch import Batch, Position
from replay.errors import NotSealedError, StoreError
from replay.known import KnownConversations
from replay.opened import stand_for_tables
from replay.reading import ConversationReader
from replay.sealing import add_views, read_whole, required, vault_for
from replay.segment_place import SegmentPlace
from replay.segments import (
    GROWING,
    WHOLE,
    Exported,
    Segment,
    described,
    nothing,
    quoted,
    select_rows,
    write_rows,
    write_whole,
)
from replay.segments_found import begun, place_of
from replay.segments_kept import crowded, publish, unknown
from replay.store_file import SEALED_FORMAT, STORE_FORMAT, create_statements, first_line
from schemas.ids import conversation_key

PUBLISH_SECONDS = 10.0
"""How long what has come may wait."""
PUBLISH_BYTES = 16 * 1024 * 1024
REST = 20
"""Publishing what lies in very many folders takes long: it then waits that many times as long."""
_MEMORY_LIMIT = "512MB"


Answer = TypeVar("Answer")


@final
class SegmentArchive:
    """One folder or bucket, to be written by this process alone. Not for two threads at once.

    Opening raises StoreError, also while another process writes; so does every method. `place` is
    where the segments lie, by default what the path says; `clock` and `today` give seconds.
    """

    def __init__(
        self,
        path: Path,
        place: SegmentPlace | None = None,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self.vault = vault_for(path)
        self._format = STORE_FORMAT if self.vault is None else SEALED_FORMAT
        self._place = place or place_of(path)
        self._clock, self._today = clock, today
        self._waiting_since: float | None = None
        self._bytes = 0
        self._took = 0.0
        with ExitStack() as stack:
            self._writing = stack.enter_context(place_of(path).writing())
            self._manifest = begun(self._place, path, nothing(self._format, GROWING))
            self._check_format()
            for name in unknown(self._manifest, self._place.names()):
                self._place.delete(name)
            self._connection = stack.enter_context(duckdb.connect())
            try:
                self._prepare()
                self.store = SegmentStore(self, KnownConversations(self.everything()))
            except duckdb.Error as error:
                raise StoreError(f"{path}: cannot read: {first_line(error)}") from error
            self._stack = stack.pop_all()

    def _check_format(self) -> None:
        """It goes on with the keys that it was begun with, or without any."""
        if self._manifest.store_format == self._format:
            return
        if self.vault is None:
            required(None, self.path)
        raise NotSealedError(
            f"{self.path}: was begun without a key file; name another, or go without"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stack:
            if kind is None:
                self.publish()

    # -- writing --------------------------------------------------------------------------------

    def write(self, batch: MessageBatch) -> None:
        """Take messages in; `settle` publishes them when it is time."""
        self.take(batch.write, batch.bytes)

    def take(self, work: Callable[[duckdb.DuckDBPyConnection], None], size: int) -> None:
        """Do what adds about so many bytes to the tables."""
        try:
            self._connection.begin()
            work(self._connection)
            self._connection.commit()
        except duckdb.Error as error:
            raise StoreError(f"{self.path}: cannot write: {first_line(error)}") from error
        self._bytes += size
        if self._waiting_since is None:
            self._waiting_since = self._clock()

    def settle(self) -> None:
        """Publish, if much waits or something has waited for long."""
        if self._waiting_since is None:
            return
        waited = self._clock() - self._waiting_since
        if self._bytes >= PUBLISH_BYTES or waited >= max(PUBLISH_SECONDS, REST * self._took):
            self.publish()

    def publish(self) -> None:
        """Let whoever reads from now on find all that was taken in.

        What fails may have been published all the same, so it is not tried again: whoever opens the
        archive next finds out.
        """
        if self._waiting_since is None:
            return
        start, self._waiting_since = self._clock(), None
        try:
            self._publish()
            self._merge()
        except duckdb.Error as error:
            raise StoreError(f"{self.path}: cannot write: {first_line(error)}") from error
        except OSError as error:
            raise StoreError(f"{self.path}: cannot write: {error.strerror}") from error
        self._bytes = 0
        self._took = self._clock() - start

    def _publish(self) -> None:
        counts = {table: self._count(table) for table in GROWING}
        for table, count in counts.items():
            if count:
                write_rows(self._connection, table, self._writing)
        for table in WHOLE:
            write_whole(self._connection, table, self._writing)
        before = self._manifest.exported
        rows = {table: before[table].rows if table in before else 0 for table in GROWING}
        exported = {
            table: Exported(rows=rows[table] + count, last="") for table, count in counts.items()
        }
        self._replace([each for each in self._manifest.segments if each.table in WHOLE], exported)
        for table in GROWING:
            self._connection.execute(f"TRUNCATE {table}")
        self._define()

    def _merge(self) -> None:
        """Make many small segments of a folder one."""
        merged: list[Segment] = []
        for number, group in enumerate(crowded(self._manifest.segments)):
            folder = self._writing / Path(group[0].path).parent
            folder.mkdir(parents=True, exist_ok=True)
            listed = ", ".join(f"'{quoted(self._at(each))}'" for each in group)
            self._connection.execute(
                f"COPY (SELECT * FROM read_parquet([{listed}], hive_partitioning = false)) "
                f"TO '{quoted(folder)}/{number}.parquet' (FORMAT parquet, ROW_GROUP_SIZE 8192)"
            )
            merged += group
        if merged:
            self._replace(merged, self._manifest.exported)
            self._define()

    def _replace(self, old: Sequence[Segment], exported: dict[str, Exported]) -> None:
        """Publish what lies unfinished in the place of other segments."""
        now = int(self._today())
        self._manifest = publish(self._place, self._manifest, old, self._writing, exported, now)
        for each in self._writing.iterdir():
            shutil.rmtree(each)

    # -- reading --------------------------------------------------------------------------------

    def copied(self) -> dict[Place, CopiedTo]:
        """Up to where each partition is copied, as far as it ever was."""
        query = "SELECT topic, partition, next_offset, message_hash FROM copied"
        return {(topic, partition): CopiedTo(*rest) for topic, partition, *rest in self.rows(query)}

    def page(self, place: Place, offset: int) -> tuple[list[ArchivedMessage], int]:
        """The messages of a partition at the next few offsets, and the offset after these."""
        return self.read(lambda connection: page_of(connection, place, offset))

    def rows(self, query: str, *parameters: object) -> list[Any]:
        """The answer to a query about all that was taken in, published or not."""
        return self.read(lambda connection: connection.execute(query, list(parameters)).fetchall())

    def read(self, work: Callable[[duckdb.DuckDBPyConnection], Answer]) -> Answer:
        """Ask it several things."""
        try:
            with self.everything() as connection:
                return work(connection)
        except duckdb.Error as error:
            raise StoreError(f"{self.path}: cannot read: {first_line(error)}") from error

    def everything(self) -> duckdb.DuckDBPyConnection:
        """A connection whose tables are the segments and what waits beside them."""
        return self._connection.cursor()  # a cursor begins in the schema main

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET threads = 1")
        connection.execute(f"SET memory_limit = '{_MEMORY_LIMIT}'")
        connection.execute("CREATE SCHEMA waiting")
        if self.vault is not None:
            connection.execute("CREATE SCHEMA stored")
        connection.execute("USE memory.waiting")
        for _, statement in create_statements(is_archive=True):
            connection.execute(statement)
        for table in WHOLE:
            found = self._locations(table)
            if found:
                chosen = select_rows(found, described(connection, table))
                connection.execute(f"INSERT INTO {table} {chosen}")
        if not self._locations("store"):
            connection.execute("INSERT INTO store VALUES (?)", [self._format])
        self._define()

    def _define(self) -> None:
        """Let the schema main be what is published now, and what waits; opened, if it is sealed."""
        schema = "main" if self.vault is None else "stored"
        for table in (*GROWING, *WHOLE):
            chosen = f"SELECT * FROM memory.waiting.{table}"
            found = self._locations(table) if table in GROWING else []
            if found:
                chosen += f" UNION ALL {select_rows(found, described(self._connection, table))}"
            self._connection.execute(f"CREATE OR REPLACE VIEW memory.{schema}.{table} AS {chosen}")
        if self.vault is not None:
            stand_for_tables(self._connection, "stored.")
            add_views(self._connection, self.vault, "stored.", temporary=False, is_archive=True)
            self._connection.execute("USE memory.waiting")

    def _locations(self, table: str) -> list[str]:
        return [self._at(each) for each in self._manifest.segments if each.table == table]

    def _at(self, segment: Segment) -> str:
        return self._place.location(segment.path)

    def _count(self, table: str) -> int:
        ((count,),) = self._connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(count)


@final
class SegmentStore:
    """The store of the log that is folded from what such an archive copies."""

    def __init__(self, archive: SegmentArchive, known: KnownConversations) -> None:
        self._archive = archive
        self._known = known
        self.vault = archive.vault

    def is_closed(self, tenant_id: str, conversation_id: str) -> bool:
        """Whether the conversation is erased, as far as its keys say."""
        return self.vault is not None and self.vault.is_destroyed(tenant_id, conversation_id)

    def positions(self, partitions: Sequence[int]) -> dict[int, Position]:
        """Up to where the store has the log of these partitions, as far as it has anything."""
        rows = self._archive.rows("SELECT partition, next_offset, record_hash FROM positions")
        return {row[0]: Position(*row) for row in rows if row[0] in partitions}

    def write(self, batch: Batch) -> None:
        """Take folded events in."""
        if batch.is_empty():
            return
        batch.encode()
        self._archive.take(batch.write, batch.bytes)
        for key in batch.conversations():
            self._known.add(key)

    def conversation(self, tenant_id: str, conversation_id: str) -> Conversation | None:
        """The conversation as its whole log leaves it, or None if there is no such log."""
        if conversation_key(tenant_id, conversation_id) not in self._known:
            return None
        path = self._archive.path
        try:
            with self._archive.everything() as connection:
                reader = ConversationReader(connection, path, tenant_id, conversation_id)
                return read_whole(self.vault, lambda: reader.at(None))
        except duckdb.Error as error:
            raise StoreError(f"{path}: cannot read: {first_line(error)}") from error
