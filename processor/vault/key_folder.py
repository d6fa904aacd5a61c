"""Wrapped data keys as files beside a store: one for each conversation, gone when it is erased.

They must not lie in the store itself: what is deleted from a DuckDB file stays in its bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import final

from processor.vault.errors import KeysAwayError
from processor.vault.lasting import sync_folder, write_whole
from schemas.ids import conversation_key
from schemas.keys import DestroyedKey, WrappedKey, decode_key_record
from schemas.wire import WireError, canonical_bytes

_KEYS = "keys"
_ERASED = "erased"


def folder_of(store: Path) -> Path:
    """Where the wrapped data keys of a store are."""
    return store.with_name(f"{store.name}.keys")


@final
class KeyFolder:
    """Implements `WrappedKeys`. Every method raises KeysAwayError if the files cannot be used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._marks = str(folder / _ERASED)

    def find(self, owner: str) -> tuple[WrappedKey, ...]:
        """The data keys of a conversation, in the order in which they were made."""
        path = self.folder / _KEYS / owner
        try:
            lines = path.read_bytes().splitlines()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise KeysAwayError(f"{path}: cannot be read: {error.strerror}") from error
        return tuple(_key(path, owner, line) for line in lines)

    def is_destroyed(self, owner: str) -> bool:
        """Whether its data keys were destroyed."""
        return os.path.exists(f"{self._marks}/{owner}")  # asked for whatever is opened

    def add(self, wrapped: WrappedKey) -> None:
        """Keep another key of a conversation, on the disk before this returns."""
        owner = _owner(wrapped)
        known = [each for each in self.find(owner) if each.key_id != wrapped.key_id]
        self._write(owner, [*known, wrapped])

    def replace(self, wrapped: WrappedKey) -> None:
        """Keep the same key in other wrapping, in its place."""
        owner = _owner(wrapped)
        known = self.find(owner)
        self._write(owner, [wrapped if each.key_id == wrapped.key_id else each for each in known])

    def _write(self, owner: str, keys: list[WrappedKey]) -> None:
        lines = b"".join(canonical_bytes(each) + b"\n" for each in keys)
        _put(self.folder / _KEYS / owner, lines)

    def destroy(self, tenant_id: str, conversation_id: str) -> bool:
        """Destroy the data keys of a conversation; whether it had any.

        The mark comes first: who is killed in between leaves a key that opens nothing any more,
        and asked again, it is unlinked.
        """
        owner = conversation_key(tenant_id, conversation_id)
        mark = DestroyedKey(tenant_id=tenant_id, conversation_id=conversation_id)
        if not self.is_destroyed(owner):
            _put(self.folder / _ERASED / owner, canonical_bytes(mark) + b"\n")
        path = self.folder / _KEYS / owner
        try:
            path.unlink()
            sync_folder(path.parent)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise KeysAwayError(f"{path}: cannot be removed: {error.strerror}") from error
        return True

    def every(self) -> Iterator[WrappedKey]:
        """Every wrapped data key there is."""
        for path in sorted((self.folder / _KEYS).glob("*/[!~]*")):
            yield from self.find(f"{path.parent.name}/{path.name}")

    def destroyed(self) -> Iterator[tuple[str, str]]:
        """Every (tenant, conversation) whose data keys were destroyed."""
        for path in sorted((self.folder / _ERASED).glob("*/[!~]*")):
            yield path.parent.name, path.name


def _owner(wrapped: WrappedKey) -> str:
    return conversation_key(wrapped.tenant_id, wrapped.conversation_id)


def _key(path: Path, owner: str, line: bytes) -> WrappedKey:
    try:
        read = decode_key_record(line)
    except WireError as invalid:
        raise KeysAwayError(f"{path}: {invalid}") from invalid
    if not isinstance(read, WrappedKey) or _owner(read) != owner:
        raise KeysAwayError(f"{path}: is no data key of {owner}")
    return read


def _put(path: Path, content: bytes) -> None:
    """A file, whole or not at all, on the disk with its name."""
    fresh = path.with_name(f"~{path.name}")  # no conversation begins so
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, content, fresh, mode=0o600)
    except OSError as error:
        raise KeysAwayError(f"{path}: cannot be written: {error.strerror}") from error
