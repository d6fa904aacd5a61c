"""Where the pages come from: a file that nobody writes, or one that this very process writes.

A file is opened for each question and let go of at once, so whoever wants to write it can; a
question that comes while it is written is answered from what is known, or as busy. One thread asks
at a time: whoever serves calls these methods from a thread of their own.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TypeVar, final

import duckdb

from replay.bucket import Bucket
from replay.bucket_path import BucketPath
from replay.errors import StoreBusyError, StoreError
from replay.opened import opened as opened_to_read
from replay.reading import ConversationReader
from replay.report.data import report_bytes
from replay.report.story import Story
from replay.segment_place import MANIFEST
from replay.store_file import first_line

STORIES_MAX = 8
"""Conversations that are kept folded; the page of another one is folded anew."""
_TENANTS = """
SELECT tenant_id, count(DISTINCT conversation_id) FROM log GROUP BY tenant_id ORDER BY tenant_id
"""
_CONVERSATIONS = """
SELECT conversation_id, max(turn), max(said_at), (
    SELECT count(*) FROM derived WHERE derived.tenant_id = log.tenant_id
    AND derived.conversation_id = log.conversation_id AND type = 'standfast.ungrounded_alert.v1'
) FROM log WHERE tenant_id = ? AND contains(lower(conversation_id), lower(?))
GROUP BY tenant_id, conversation_id ORDER BY max(said_at) DESC, conversation_id LIMIT ? OFFSET ?
"""
_REACHED = """
SELECT max(sequence) FROM log WHERE tenant_id = ? AND conversation_id = ?
"""
_DIGEST = """
SELECT digest FROM log WHERE tenant_id = ? AND conversation_id = ? AND sequence = ?
"""
Key = tuple[str, str]
Answer = TypeVar("Answer")


@final
class Listed(NamedTuple):
    """One line of the list of conversations."""

    conversation_id: str
    turns: int
    last_said: datetime
    alerts: int


@final
class Source:
    """Answers from a store; `opened` gives a connection for one question. Raises StoreError."""

    def __init__(
        self, path: Path, opened: Callable[[], duckdb.DuckDBPyConnection] | None = None
    ) -> None:
        self.path = path
        self._beside = opened
        self._stories: OrderedDict[Key, Story] = OrderedDict()
        self._reached: dict[Key, tuple[tuple[object, ...], int]] = {}

    def tenants(self) -> list[tuple[str, int]]:
        """Every tenant and how many conversations it has."""
        with self._connection() as connection:
            return connection.execute(_TENANTS).fetchall()

    def conversations(self, tenant_id: str, query: str, skip: int, most: int) -> list[Listed]:
        """Conversations of a tenant whose id contains the query, the latest first."""
        with self._connection() as connection:
            rows = connection.execute(_CONVERSATIONS, [tenant_id, query, most, skip]).fetchall()
        return [Listed(*row) for row in rows]

    def data(self, tenant_id: str, conversation_id: str) -> bytes | None:
        """What the page of a conversation shows; None if there is no such conversation."""
        key = (tenant_id, conversation_id)
        try:
            story = self._told(key)
        except StoreBusyError:
            story = self._stories.get(key)
            if story is None:
                raise
        return None if story is None else report_bytes(story.value())

    def reached(self, tenant_id: str, conversation_id: str) -> int:
        """The last event of a conversation, 0 if it has none; opens a file only if it changed."""
        key = (tenant_id, conversation_id)
        stamp = () if self._beside is not None else _stamp(self.path)
        seen, sequence = self._reached.get(key, ((), 0))
        if stamp and stamp == seen:
            return sequence
        try:
            with self._connection() as connection:
                ((found,),) = connection.execute(_REACHED, list(key)).fetchall()
        except StoreBusyError:
            return sequence
        if len(self._reached) >= STORIES_MAX**2:
            self._reached.clear()
        self._reached[key] = (stamp, found or 0)
        return found or 0

    def _told(self, key: Key) -> Story | None:
        with self._connection() as connection:
            story = self._stories.pop(key, None)
            if story is None or not _continues(connection, key, story):
                story = Story(*key)
            if not story.catch_up(ConversationReader(connection, self.path, *key)):
                return None
        self._stories[key] = story  # only once it is told without fault
        if len(self._stories) > STORIES_MAX:
            self._stories.popitem(last=False)
        return story

    @contextmanager
    def _connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that sees one state of the store, whoever writes meanwhile."""
        opened = self._beside or (lambda: opened_to_read(self.path))
        try:
            with opened() as connection:
                connection.begin()
                yield connection
        except duckdb.Error as error:
            raise StoreError(f"{self.path}: cannot read: {first_line(error)}") from error


def _continues(connection: duckdb.DuckDBPyConnection, key: Key, story: Story) -> bool:
    """Whether the store still has the log that was told; another file may have taken its place."""
    row = connection.execute(_DIGEST, [*key, story.conversation.sequence]).fetchone()
    return row is not None and row[0] == story.conversation.digest


def _stamp(path: Path) -> tuple[object, ...]:
    """What changes when the file does, or what is written beside it before it is taken in."""
    if isinstance(path, BucketPath):
        return (Bucket(path).changed(),)
    stamps: list[int] = []
    for name in (path, path / MANIFEST, path.with_name(f"{path.name}.wal")):
        try:
            found = os.stat(name)
        except OSError:
            stamps.append(0)
        else:
            stamps += [found.st_ino, found.st_size, found.st_mtime_ns]
    return tuple(stamps)
