"""Bytes that memory has no room for, on a disk, until the process ends.

They are encrypted with a key that this process alone has, so that nothing of what conversations say
is left there when it is gone.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from typing import final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from replay.errors import StoreError

_CACHE_KIB = 8 * 1024
_NONCE_BYTES = 12


@final
class TemporaryFile:
    """Bytes by key, in a file without a name that SQLite removes; a few MB of it are in memory.

    One call at a time, from any thread.
    """

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._file.close)
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._file.execute("CREATE TABLE waiting (key TEXT PRIMARY KEY, bytes BLOB NOT NULL)")
        self._cipher = AESGCM(AESGCM.generate_key(256))
        self._file.execute("BEGIN")  # and never committed: there is nothing to recover

    def put(self, key: str, stored: bytes) -> None:
        """Keep the bytes. Raises StoreError if the disk is full."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, stored, key.encode())
        try:
            self._file.execute("INSERT OR REPLACE INTO waiting VALUES (?, ?)", (key, sealed))
        except sqlite3.Error as error:
            raise StoreError(f"the temporary file cannot be written: {error}") from error

    def get(self, key: str) -> bytes | None:
        """The bytes that were kept last, or None. Raises StoreError."""
        try:
            row = self._file.execute("SELECT bytes FROM waiting WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise StoreError(f"the temporary file cannot be read: {error}") from error
        if row is None:
            return None
        sealed: bytes = row[0]
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], key.encode())
        except InvalidTag as changed:
            raise StoreError("the temporary file was changed by somebody else") from changed
