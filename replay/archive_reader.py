"""Reading an archive that nobody writes: its messages in order, and whether any is missing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

import duckdb

from processor.vault.errors import KeyDestroyedError, SealedBytesError
from processor.vault.sealed import Kind, is_sealed
from replay.archive_batch import ArchivedMessage, conversation_of, message_of_row
from replay.errors import StoreError
from replay.memory_limit import ReadInPieces
from replay.opened import opened
from replay.sealing import vault_for
from replay.store_file import first_line

MEMORY_LIMIT = "256MB"
PAGE_OFFSETS = 50
"""Sorted in memory alone where they are opened; each may have a megabyte."""
OPERATIONS = "operations"

_MESSAGES = """
SELECT topic, partition, "offset", timestamp_ms, key, headers, value
FROM messages WHERE topic = ? AND partition = ? AND "offset" >= ? AND "offset" < ?
ORDER BY "offset"
"""
_NEXT = 'SELECT min("offset") FROM messages WHERE topic = ? AND partition = ? AND "offset" >= ?'
_LACKS = """
SELECT partition, next_offset
    - (SELECT count(*) FROM messages m WHERE m.topic = c.topic AND m.partition = c.partition)
    - (SELECT coalesce(sum(g.next_offset - g.first_offset), 0) FROM gaps g
       WHERE g.topic = c.topic AND g.partition = c.partition AND g.reason = 'empty') AS lacks
FROM copied c WHERE topic = ? ORDER BY partition
"""


@final
class ArchiveReader:
    """One archive, opened to be read. Every method raises StoreError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._vault = vault_for(path)
        self._connection = opened(path)
        tables = {name for (name,) in self._connection.execute("SHOW TABLES").fetchall()}
        if "messages" not in tables:
            self._connection.close()
            raise StoreError(f"{path}: not an archive; standfast archive makes one")
        self.is_sealed = "opened_messages" in tables
        self._connection.execute("SET threads = 1")
        self._connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def lacking(self, topic: str) -> dict[int, int]:
        """How many messages each partition of the topic lacks of those that it once had."""
        try:
            rows = self._connection.execute(_LACKS, [topic]).fetchall()
        except duckdb.Error as error:
            raise self._unreadable(error) from error
        return {partition: lacks for partition, lacks in rows if lacks}

    def partitions(self, topic: str) -> list[int]:
        """The partitions of the topic that were copied."""
        rows = self._connection.execute(
            "SELECT partition FROM copied WHERE topic = ? ORDER BY partition", [topic]
        ).fetchall()
        return [partition for (partition,) in rows]

    def pages(self, topic: str) -> Iterator[list[ArchivedMessage]]:
        """The messages of a topic, partition by partition, in the order of their offsets.

        Segments have them by tenant and day, so they are asked for by their offsets.
        """
        is_opened = self.is_sealed and topic != OPERATIONS  # the log stays sealed
        query = _MESSAGES.replace("messages", "opened_messages" if is_opened else "messages")
        pieces = ReadInPieces(self._connection, PAGE_OFFSETS)
        for partition in self.partitions(topic):
            last = -1
            try:
                while (first := self._next(topic, partition, last + 1)) is not None:
                    rows = pieces.read(partial(self._rows, query, topic, partition, first))
                    page = [self._opened(message_of_row(row)) for row in rows]
                    for message in page:
                        if message.offset <= last:
                            where = f"{topic}/{partition}"
                            raise StoreError(f"{self.path}: damaged: {where} has an offset twice")
                        last = message.offset
                    yield page
            except duckdb.Error as error:
                raise self._unreadable(error) from error

    def _rows(
        self, query: str, topic: str, partition: int, first: int, count: int
    ) -> list[tuple[Any, ...]]:
        window = [topic, partition, first, first + count]
        return self._connection.execute(query, window).fetchall()

    def _next(self, topic: str, partition: int, offset: int) -> int | None:
        """The first offset from this one on at which there is a message."""
        ((found,),) = self._connection.execute(_NEXT, [topic, partition, offset]).fetchall()
        return None if found is None else int(found)

    def _opened(self, message: ArchivedMessage) -> ArchivedMessage:
        """The message with what its headers say, where the archive has that sealed."""
        ids = conversation_of(message.key)
        if self._vault is None or ids[0] is None or ids[1] is None:
            return message
        headers = []
        for name, said in message.headers:
            if said is not None and is_sealed(said):
                try:
                    said = self._vault.open(Kind.MESSAGE, ids[0], ids[1], said)
                except (KeyDestroyedError, SealedBytesError):
                    said = None
            headers.append((name, said))
        return message._replace(headers=tuple(headers))

    def _unreadable(self, error: duckdb.Error) -> StoreError:
        return StoreError(f"{self.path}: cannot read: {first_line(error)}")
