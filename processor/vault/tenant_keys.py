"""The keys of tenants, which wrap data keys: who has them, and a local file as the default.

A key management service takes the place of the file by implementing `TenantKeys`: it is handed the
256 bits of a data key to wrap, and never sees what these seal.
"""

from __future__ import annotations

import base64
import json
import os
import stat
import threading
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from pydantic import Field

from processor.vault.errors import KeyFileError, KeysAwayError
from processor.vault.lasting import write_whole
from processor.vault.sealed import SECRET_BYTES, cipher_of, random_secret
from schemas.contract import Contract
from schemas.ids import TENANT_PATTERN
from schemas.keys import TenantKeyId
from schemas.wire import WireError, decode_contract

ANY_TENANT = "*"
_PRIVATE = 0o600
_OTHERS = 0o037
"""What nobody but the owner may do; its group may read, as Kubernetes mounts secrets."""
_PURPOSE = b"standfast.tenant_key.v1"


@final
class Wrapped(NamedTuple):
    """A wrapped data key, and the id of the tenant's key that unwraps it."""

    tenant_key: str
    wrapped: bytes


class TenantKeys(Protocol):
    """Wraps data keys. `context` is bound to what is wrapped; both raise KeysAwayError."""

    def wrap(self, tenant_id: str, context: bytes, secret: bytes) -> Wrapped:
        """Wrap with the newest key of the tenant."""

    def unwrap(self, tenant_id: str, context: bytes, wrapped: Wrapped) -> bytes:
        """The data key again."""


class KeyLine(Contract):
    """A line of a key file; tenant `*` is for all that have no key of their own."""

    id: TenantKeyId
    tenant: Annotated[str, Field(pattern=rf"{TENANT_PATTERN}|^\*$")]
    key: Annotated[str, Field(min_length=44, max_length=44)]


@final
class _TenantKey(NamedTuple):
    tenant: str
    cipher: AESSIV


@final
class KeyFile:
    """Implements `TenantKeys` with a file: JSON Lines, the newest key of a tenant last.

    The file is looked at whenever a key is wrapped or unwrapped, so a key that is added is used,
    and a file that is away is noticed. Any thread may ask.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] = ()
        self._keys: dict[str, _TenantKey] = {}

    def check(self) -> None:
        """Raise KeysAwayError if the file is not there, KeyFileError if it is of no use."""
        self._current()

    def wrap(self, tenant_id: str, context: bytes, secret: bytes) -> Wrapped:
        """Wrap with the newest key of the tenant, else with the newest for all."""
        keys = self._current()
        for wanted in (tenant_id, ANY_TENANT):
            named = [id_ for id_, key in keys.items() if key.tenant == wanted]
            if named:
                told = [_PURPOSE, tenant_id.encode(), context]
                return Wrapped(named[-1], keys[named[-1]].cipher.encrypt(secret, told))
        raise KeysAwayError(f"{self.path}: has no key for tenant {tenant_id!r}")

    def unwrap(self, tenant_id: str, context: bytes, wrapped: Wrapped) -> bytes:
        """The data key again."""
        key = self._current().get(wrapped.tenant_key)
        if key is None:
            raise KeysAwayError(f"{self.path}: has no key {wrapped.tenant_key!r}")
        if key.tenant not in (tenant_id, ANY_TENANT):
            raise KeysAwayError(f"{self.path}: {wrapped.tenant_key!r} is another tenant's key")
        try:
            return key.cipher.decrypt(wrapped.wrapped, [_PURPOSE, tenant_id.encode(), context])
        except InvalidTag as invalid:
            raise KeysAwayError(
                f"{self.path}: key {wrapped.tenant_key!r} does not unwrap {context.decode()}"
            ) from invalid

    def _current(self) -> dict[str, _TenantKey]:
        with self._lock:
            try:
                found = self.path.stat()
                seen = (found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode)
                if seen != self._seen:
                    self._keys = _read(self.path, found)
                    self._seen = seen
            except OSError as away:
                self._seen = ()
                raise KeysAwayError(f"{self.path}: cannot be read: {away.strerror}") from away
            return self._keys


def _read(path: Path, found: os.stat_result) -> dict[str, _TenantKey]:
    if not stat.S_ISREG(found.st_mode):
        raise KeyFileError(f"{path}: is no file")
    if stat.S_IMODE(found.st_mode) & _OTHERS:
        raise KeyFileError(f"{path}: others may read or change it; chmod 600 makes it private")
    keys: dict[str, _TenantKey] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            read = decode_contract(KeyLine, line)
            secret = base64.b64decode(read.key, validate=True)
        except (WireError, ValueError) as invalid:
            raise KeyFileError(f"{path}:{number}: {_without_secret(invalid)}") from None
        if len(secret) != SECRET_BYTES:
            raise KeyFileError(f"{path}:{number}: key: not {SECRET_BYTES} bytes in base64")
        if read.id in keys:
            raise KeyFileError(f"{path}:{number}: id: {read.id!r} stands there already")
        keys[read.id] = _TenantKey(read.tenant, cipher_of(secret, _PURPOSE))
    if not keys:
        raise KeyFileError(f"{path}: has no key")
    return keys


def _without_secret(invalid: Exception) -> str:
    """What is wrong with a line, and nothing of what stands in it."""
    return str(invalid) if isinstance(invalid, WireError) else "key: no base64"


def add_tenant_key(path: Path, tenant: str, id_: str) -> None:
    """Add a new key to a file, which is made first if need be, for its owner alone.

    The file is whole at any time. Raises KeyFileError.
    """
    names = _read(path, path.stat()) if path.exists() else {}
    if id_ in names:
        raise KeyFileError(f"{path}: it has a key {id_!r} already")
    key = base64.b64encode(random_secret()).decode()
    line = json.dumps({"id": id_, "tenant": tenant, "key": key}).encode()
    fresh = path.with_name(f"{path.name}.new")
    try:
        before = path.read_bytes().splitlines() if names else []
        write_whole(path, b"".join(each + b"\n" for each in (*before, line)), fresh, _PRIVATE)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise KeyFileError(f"{path}: cannot be written: {error.strerror}") from error
