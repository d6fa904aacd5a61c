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

from replay.archive_batch import CopiedTo, MessageBatch, Place
from replay.batch import MemoryLimit
from replay.errors import StoreError
from replay.store_file import Watch, connect, first_line

_TABLES = frozenset({"messages", "copied", "gaps"})


@final
class Archive:
    """One open DuckDB file, to be written. Not for use by two threads at once.

    Opening, `write` and closing raise StoreError; opening does so while another process has it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = connect(path, read_only=False)
        try:
            self._make_tables()
            self._memory = MemoryLimit(self._connection)
        except duckdb.Error as error:
            self._connection.close()
            raise StoreError(f"{path}: cannot open: {first_line(error)}") from error
        except StoreError:
            self._connection.close()
            raise
        self._watch = Watch(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._connection.close()
        except duckdb.Error as failed:
            raise StoreError(f"{self.path}: cannot close: {first_line(failed)}") from failed

    def _make_tables(self) -> None:
        connection = self._connection
        tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        if not tables >= _TABLES and connection.execute("SELECT 1 FROM log LIMIT 1").fetchone():
            raise StoreError(f"{self.path}: a run or a worker keeps its log there; name another")
        connection.begin()
        connection.execute((files("replay") / "sql" / "archive.sql").read_text())
        connection.commit()

    def copied(self) -> dict[Place, CopiedTo]:
        """Up to where each partition is copied, as far as it ever was."""
        rows = self._connection.execute(
            "SELECT topic, partition, next_offset, message_hash FROM copied"
        ).fetchall()
        return {(topic, partition): CopiedTo(*rest) for topic, partition, *rest in rows}

    def write(self, batch: MessageBatch) -> None:
        """Write a batch in one transaction."""
        self._watch.check()
        try:
            self._memory.make_room(batch.bytes)
            self._connection.begin()
            batch.write(self._connection)
            self._connection.commit()
        except duckdb.Error as error:
            raise StoreError(f"{self.path}: cannot write: {first_line(error)}") from error
        self._watch.renew()
