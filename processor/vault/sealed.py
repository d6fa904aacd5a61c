"""Sealed bytes: a magic word with the version, the id of the data key, and the ciphertext.

The cipher is AES-SIV (RFC 5297), deterministic and authenticated: whoever seals the same thing
twice writes the same bytes, so that what is sent again is equal, and no counter or nonce can be
used twice. What is authenticated beside the bytes says whose they are and what they are, so a
ciphertext opens nowhere else.
"""

from __future__ import annotations

import base64
import os
from enum import StrEnum
from typing import final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from processor.vault.errors import SealedBytesError

MAGIC = b"\x00SEAL\x01"
"""No JSON, no compressed bytes and no text of ours begins with it; the last byte is the version."""
KEY_ID_BYTES = 16
SECRET_BYTES = 32
_TAG_BYTES = 16
_OVERHEAD_BYTES = len(MAGIC) + KEY_ID_BYTES + _TAG_BYTES
_TEXT = "sealed:"


class Kind(StrEnum):
    """What was sealed: an event is no snapshot, wherever its bytes are moved."""

    EVENT = "event"
    DERIVED = "derived"
    DIGEST = "digest"
    SNAPSHOT = "snapshot"
    CHECKPOINT = "checkpoint"
    MESSAGE = "message"
    LETTER = "letter"


def is_sealed(stored: bytes) -> bool:
    """Whether the bytes begin as sealed bytes do."""
    return stored.startswith(MAGIC)


def key_id_of(stored: bytes) -> bytes:
    """The id of the data key that opens sealed bytes. Raises SealedBytesError."""
    if not is_sealed(stored) or len(stored) < _OVERHEAD_BYTES:
        raise SealedBytesError("these are no sealed bytes")
    return stored[len(MAGIC) : len(MAGIC) + KEY_ID_BYTES]


def as_text(sealed: bytes) -> str:
    """Sealed bytes where only text can stand."""
    return _TEXT + base64.b64encode(sealed).decode()


def from_text(stored: str) -> bytes | None:
    """The sealed bytes that a text stands for; None for any other text."""
    if not stored.startswith(_TEXT):
        return None
    try:
        return base64.b64decode(stored.removeprefix(_TEXT), validate=True)
    except ValueError:
        return b""


def cipher_of(secret: bytes, purpose: bytes) -> AESSIV:
    """The cipher for a purpose under 256 secret bits: AES-256 for each half of AES-SIV."""
    return AESSIV(HKDF(SHA512(), 64, None, purpose).derive(secret))


@final
class DataKey:
    """The key of one conversation; `owner` is `tenant/conversation`."""

    def __init__(self, owner: str, key_id: bytes, secret: bytes) -> None:
        self.key_id = key_id
        self._owner = owner
        self._cipher = cipher_of(secret, b"standfast.data_key.v1")

    def seal(self, kind: Kind, plain: bytes) -> bytes:
        """The sealed bytes of something of this conversation."""
        # AES-SIV refuses to encrypt nothing, so there is always one byte
        return MAGIC + self.key_id + self._cipher.encrypt(b"\x01" + plain, self._told(kind))

    def open(self, kind: Kind, sealed: bytes) -> bytes:
        """What was sealed. Raises SealedBytesError."""
        if key_id_of(sealed) != self.key_id:
            raise SealedBytesError(f"{self._owner}: the {kind} was sealed with another key")
        try:
            return self._cipher.decrypt(
                sealed[len(MAGIC) + KEY_ID_BYTES :], self._told(kind)
            ).removeprefix(b"\x01")
        except InvalidTag as invalid:
            raise SealedBytesError(
                f"{self._owner}: the {kind} was changed, or sealed for something else"
            ) from invalid

    def _told(self, kind: Kind) -> list[bytes]:
        return [MAGIC, self.key_id, kind.encode(), self._owner.encode()]


def random_secret() -> bytes:
    """256 random bits."""
    return os.urandom(SECRET_BYTES)


def random_key_id() -> bytes:
    """The id of a new data key."""
    return os.urandom(KEY_ID_BYTES)
