"""Bearer tokens: who may ask about which tenant's conversations, and for how long.

The configuration is a file with one JSON object per line, of which each holds the SHA-256 of a
token; so the file gives nobody a token. It is read again when it changes: a token is added, later
the old one is removed. A file that cannot be read leaves the tokens as they were, until they end.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple, final

import structlog
from pydantic import Field

from processor.app.errors import SettingsError
from schemas.contract import Contract, Digest, Timestamp
from schemas.ids import TenantId
from schemas.wire import WireError, decode_contract

_log = structlog.get_logger(__name__)

PREFIX = "sf_"
RELOAD_SECONDS = 1.0
TOKEN_CHARS_MAX = 512
_NOBODY = "0" * 64


class Scope(StrEnum):
    """What a token allows."""

    CHECK = "check"
    READ = "read"
    ERASE = "erase"


class TokenLine(Contract):
    """One line of the file; `expires` null means never."""

    tenant: TenantId
    sha256: Digest
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1, max_length=len(Scope))]
    expires: Timestamp | None = None


@final
class Holder(NamedTuple):
    """Who holds a token; `tenant_id` None stands for anybody, where the gate is open."""

    tenant_id: str | None
    scopes: tuple[Scope, ...]


ANYBODY = Holder(None, (Scope.CHECK, Scope.READ))
"""Nobody erases without a token."""


def new_token(
    tenant_id: str, scopes: tuple[Scope, ...], lifetime: timedelta | None
) -> tuple[str, TokenLine]:
    """A token that nobody can guess, and the line for the file."""
    token = PREFIX + secrets.token_urlsafe(32)
    expires = None if lifetime is None else datetime.now(UTC).replace(microsecond=0) + lifetime
    return token, TokenLine(tenant=tenant_id, sha256=_hash(token), scopes=scopes, expires=expires)


def read_tokens(written: bytes) -> dict[str, TokenLine]:
    """The lines by their hash. Raises WireError that names the line."""
    tokens: dict[str, TokenLine] = {}
    for number, line in enumerate(written.splitlines(), 1):
        if not line.strip():
            continue
        try:
            token = decode_contract(TokenLine, line)
        except WireError as wrong:
            raise WireError(f"line {number}", str(wrong)) from wrong
        if token.sha256 in tokens:
            raise WireError(f"line {number}", "the token stands twice")
        tokens[token.sha256] = token
    return tokens


@final
@dataclass
class Tokens:
    """The tokens of a file; None is an open gate, which everybody may pass."""

    path: Path | None
    _tokens: Mapping[str, TokenLine] = field(default_factory=dict)
    _seen: tuple[int, ...] = ()

    def load(self) -> None:
        """Read the file for the first time. Raises SettingsError."""
        if self.path is None:
            return
        try:
            self._seen = _stamp(self.path)
            self._tokens = read_tokens(self.path.read_bytes())
        except OSError as unreadable:
            raise SettingsError(f"{self.path}: {unreadable.strerror}") from unreadable
        except WireError as wrong:
            raise SettingsError(f"{self.path}: {wrong}") from wrong

    def holder(self, token: str | None, now: datetime) -> Holder | None:
        """Who holds the token; None if nobody does, for whatever reason, after the same work.

        What is looked up is the hash of something that cannot be guessed, so how long that takes
        tells nothing; the comparison takes as long for every token.
        """
        if self.path is None:
            return ANYBODY
        hashed = _hash(token or "")
        found = self._tokens.get(hashed)
        is_it = hmac.compare_digest(_NOBODY if found is None else found.sha256, hashed)
        if found is None or not is_it or (found.expires is not None and found.expires <= now):
            return None
        return Holder(found.tenant, found.scopes)

    async def watch(self) -> None:
        """Read the file whenever it changes, until cancelled."""
        if self.path is None:
            return
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            await self.reload(self.path)

    async def reload(self, path: Path) -> None:
        """Read the file if it is another than before."""
        try:
            stamp = await asyncio.to_thread(_stamp, path)
            if stamp == self._seen:
                return
            self._tokens = read_tokens(await asyncio.to_thread(path.read_bytes))
            _log.info("tokens_read", tokens=len(self._tokens))
        except OSError as unreadable:
            stamp = ()
            if self._seen:
                _log.error("tokens_unreadable", problem=unreadable.strerror)
        except WireError as wrong:
            _log.error("tokens_unreadable", problem=wrong.place)
        self._seen = stamp


def _stamp(path: Path) -> tuple[int, ...]:
    """What changes when the file does, also if it is replaced through a link."""
    found = os.stat(path)
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
