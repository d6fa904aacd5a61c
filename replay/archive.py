"""The archive: a store that also holds every message of the topics, exactly once.

What decides where copying goes on is the table `copied` in the file itself, written in one
transaction with the messages: a process that is killed leaves neither half a batch nor a place that
is ahead of its messages.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Self, final

import duckdb

from replay.archive_batch import (
    ArchivedMessage,
    CopiedTo,
    MessageBatch,
    Place,
    page_of,
)
from replay.errors import StoreError
from replay.memory_limit import Amount
from replay.store import Store

_TABLES = frozenset({"messages", "copied", "gaps"})


@final
class Archive:
    """One open DuckDB file, to be written. Not for use by two threads at once.

    Opening raises StoreError, also while another process has the file; so does every method.
    `store` is the same file as the store of the log that is folded from it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = Store(path)
        try:
            self._make_tables()
        except StoreError as refused:
            self.store.__exit__(type(refused), refused, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.store.__exit__(kind, error, trace)

    def _make_tables(self) -> None:
        tables = {name for (name,) in self.store.rows("SHOW TABLES")}
        if tables >= _TABLES:
            return
        if self.store.rows("SELECT 1 FROM log LIMIT 1"):
            raise StoreError(f"{self.path}: a run or a worker keeps its log there; name another")
        schema = (files("replay") / "sql" / "archive.sql").read_text()

        def create(connection: duckdb.DuckDBPyConnection) -> None:
            connection.execute(schema)

        self.store.transact(create, ())

    def copied(self) -> dict[Place, CopiedTo]:
        """Up to where each partition is copied, as far as it ever was."""
        rows = self.store.rows("SELECT topic, partition, next_offset, message_hash FROM copied")
        return {(topic, partition): CopiedTo(*rest) for topic, partition, *rest in rows}

    def page(self, place: Place, offset: int) -> tuple[list[ArchivedMessage], int]:
        """The messages of a partition at the next few offsets, and the offset after these."""
        return self.store.read(lambda connection: page_of(connection, place, offset))

    def write(self, batch: MessageBatch) -> None:
        """Write a batch in one transaction."""
        self.store.transact(batch.write, [Amount("messages", len(batch), batch.bytes)])

    def settle(self) -> None:
        """Nothing waits here: a batch is on the disk when it is written."""
