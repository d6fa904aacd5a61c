"""The conversations that a one-process run works on: those in use in memory, the rest on disk.

What was used least recently waits in a temporary file that is gone when the process is. Reading a
conversation back from there costs a small part of what reading it from the store does, and the
store need not be written first.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections import OrderedDict
from typing import final

from processor.engine.conversation import Conversation
from processor.engine.snapshot import dump, load
from replay.errors import StoreError
from replay.store import Store
from schemas.ids import conversation_key

EMPTY_WEIGHT = 8
"""What a conversation costs before anything is said in it, in records."""
_CACHE_KIB = 8 * 1024


@final
class LiveConversations:
    """Finds conversations by their ids, and holds as many as weigh `records_max` records.

    At least the conversation that was asked for last is held, however much it weighs.
    """

    def __init__(self, store: Store, records_max: int) -> None:
        self._store = store
        self._records_max = records_max
        self._live: OrderedDict[str, tuple[Conversation, int]] = OrderedDict()
        self._weight = 0
        self._waiting = _TemporaryFile()

    def get(self, tenant_id: str, conversation_id: str) -> Conversation:
        """The conversation as far as it got; a new one if there is none. Raises StoreError."""
        key = conversation_key(tenant_id, conversation_id)
        held = self._live.get(key)
        if held is not None:
            self._live.move_to_end(key)
            return held[0]
        dumped = self._waiting.get(key)
        if dumped is not None:
            conversation = load(dumped)
        else:
            conversation = self._store.conversation(
                tenant_id, conversation_id
            ) or Conversation.empty(tenant_id, conversation_id)
        self.hold(conversation)
        return conversation

    def hold(self, conversation: Conversation) -> None:
        """Weigh a conversation that is new here, or that has grown, and make room for it."""
        key = conversation_key(conversation.tenant_id, conversation.conversation_id)
        _, before = self._live.pop(key, (conversation, 0))
        weight = EMPTY_WEIGHT + len(conversation.state.records) + len(conversation.utterances) // 4
        self._live[key] = (conversation, weight)
        self._weight += weight - before
        while self._weight > self._records_max and len(self._live) > 1:
            oldest, (dropped, lost) = self._live.popitem(last=False)
            self._weight -= lost
            if dropped.sequence > 0:
                self._waiting.put(oldest, dump(dropped))
            dropped.release()


@final
class _TemporaryFile:
    """Bytes by key, in a file without a name that SQLite removes; a few MB of it are in memory."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)
        weakref.finalize(self, self._file.close)
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._file.execute("CREATE TABLE waiting (key TEXT PRIMARY KEY, bytes BLOB NOT NULL)")
        self._file.execute("BEGIN")  # and never committed: there is nothing to recover

    def put(self, key: str, stored: bytes) -> None:
        """Keep the bytes. Raises StoreError if the disk is full."""
        try:
            self._file.execute("INSERT OR REPLACE INTO waiting VALUES (?, ?)", (key, stored))
        except sqlite3.Error as error:
            raise StoreError(f"the temporary file cannot be written: {error}") from error

    def get(self, key: str) -> bytes | None:
        """The bytes that were kept last, or None. Raises StoreError."""
        try:
            row = self._file.execute("SELECT bytes FROM waiting WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise StoreError(f"the temporary file cannot be read: {error}") from error
        return None if row is None else row[0]
