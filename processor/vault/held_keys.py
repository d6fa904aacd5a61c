"""Wrapped data keys in memory, as a process holds them that follows the topic `keys`."""

from __future__ import annotations

import threading
from typing import final

from processor.vault.errors import KeysAwayError
from schemas.ids import conversation_key
from schemas.keys import DestroyedKey, KeyRecord, WrappedKey


@final
class HeldKeys:
    """Implements `WrappedKeys`; some 700 bytes a conversation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[str, tuple[WrappedKey, ...]] = {}
        self._destroyed: set[str] = set()

    def find(self, owner: str) -> tuple[WrappedKey, ...]:
        """The data keys of a conversation, in the order of the topic."""
        return self._keys.get(owner, ())

    def is_destroyed(self, owner: str) -> bool:
        """Whether its data keys were destroyed."""
        return owner in self._destroyed

    def add(self, wrapped: WrappedKey) -> None:
        """A key is kept by the topic first, and comes from there."""
        owner = conversation_key(wrapped.tenant_id, wrapped.conversation_id)
        raise KeysAwayError(f"{owner}: it has no data key in the topic keys yet")

    def take(self, record: KeyRecord) -> None:
        """Take in a record in the order of the topic; a destroyed mark is for ever."""
        owner = conversation_key(record.tenant_id, record.conversation_id)
        with self._lock:
            match record:
                case DestroyedKey():
                    self._destroyed.add(owner)
                    self._keys.pop(owner, None)
                case WrappedKey() if owner not in self._destroyed:
                    known = [e for e in self._keys.get(owner, ()) if e.key_id != record.key_id]
                    self._keys[owner] = (*known, record)

    def every(self) -> list[WrappedKey]:
        """All data keys that are held."""
        with self._lock:
            return [key for keys in self._keys.values() for key in keys]

    def clear(self) -> None:
        """Hold none."""
        with self._lock:
            self._keys.clear()
            self._destroyed.clear()
