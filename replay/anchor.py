"""Signed heads of chains: what was in a store once, in a file that lies somewhere else.

Hashes without a key can be made up again, and a log whose tail was cut is a valid chain. Who kept a
signed head can tell both. An anchor is JSON Lines: what it is and whose key signed it, one head per
conversation, and the Ed25519 signature over the SHA-256 of all lines before.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, final

import duckdb
import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from replay.divergence import Divergence, Where, changed
from replay.errors import StoreError
from schemas.wire import canonical_bytes

ANCHOR_TYPE = "standfast.anchor.v1"
_PAGE_HEADS = 5_000
_PRIVATE_MODE, _PUBLIC_MODE = 0o600, 0o644
_HEADS = """
SELECT tenant_id, conversation_id, max(sequence), arg_max(digest, sequence)
FROM log GROUP BY ALL ORDER BY tenant_id, conversation_id
"""
_AT_HEADS = """
SELECT h.tenant_id, h.conversation_id, h.sequence, h.digest, any_value(l.turn), any_value(l.digest)
FROM (SELECT unnest(?) AS tenant_id, unnest(?) AS conversation_id, unnest(?) AS sequence,
             unnest(?) AS digest) h
LEFT JOIN log l USING (tenant_id, conversation_id, sequence)
GROUP BY ALL HAVING h.digest IS DISTINCT FROM any_value(l.digest)
"""


@final
class Head(NamedTuple):
    """How far a conversation's log went, and the digest of its chain there."""

    tenant_id: str
    conversation_id: str
    sequence: int
    digest: str


def new_key(path: Path) -> Path:
    """Make a key in a file that only its owner can read; the path of the public one beside it."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = path.with_name(f"{path.name}.pub")
    for file, mode, content in (
        (path, _PRIVATE_MODE, private),
        (public, _PUBLIC_MODE, _pem(key.public_key())),
    ):
        _create(file, mode, [content])
    return public


def write_anchor(path: Path, connection: duckdb.DuckDBPyConnection, key: Ed25519PrivateKey) -> int:
    """Write the heads of every log of a store, signed, into a new file; how many these are.

    Raises StoreError.
    """
    heads = 0

    def lines() -> Iterator[bytes]:
        nonlocal heads
        for line, is_head in _anchor_lines(connection, key):
            heads += is_head
            yield line

    _create(path, _PUBLIC_MODE, lines())
    return heads


def _create(path: Path, mode: int, lines: Iterable[bytes]) -> None:
    """A new file, whole or not at all. Raises StoreError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        raise StoreError(f"{path}: cannot create: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(lines)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise StoreError(f"{path}: cannot write: {error.strerror}") from error


def private_key(path: Path) -> Ed25519PrivateKey:
    """The key in a PEM file. Raises StoreError."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise StoreError(f"{path}: not an unencrypted private key in PEM") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise StoreError(f"{path}: not an Ed25519 key")
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    """The key in a PEM file. Raises StoreError."""
    try:
        key = load_pem_public_key(path.read_bytes())
    except ValueError as error:
        raise StoreError(f"{path}: not a public key in PEM") from error
    if not isinstance(key, Ed25519PublicKey):
        raise StoreError(f"{path}: not an Ed25519 key")
    return key


def _anchor_lines(
    connection: duckdb.DuckDBPyConnection, key: Ed25519PrivateKey
) -> Iterator[tuple[bytes, bool]]:
    """The lines of an anchor for every log of a store; the flag marks the heads."""
    hashed = hashlib.sha256()
    first = {"type": ANCHOR_TYPE, "public_key": key.public_key().public_bytes_raw().hex()}
    lines = [(canonical_bytes(first), False)]
    heads = connection.cursor().execute(_HEADS)
    while lines:
        for line, is_head in lines:
            hashed.update(line + b"\n")
            yield line + b"\n", is_head
        rows = heads.fetchmany(_PAGE_HEADS)
        lines = [(canonical_bytes(Head(*row)._asdict()), True) for row in rows]
    yield canonical_bytes({"signature": key.sign(hashed.digest()).hex()}) + b"\n", False


def check_anchor(path: Path, key: Ed25519PublicKey | None) -> str:
    """Check the signature of an anchor; the key that it names, in hexadecimal.

    With `key`, it must be signed by that one. Raises StoreError.
    """
    hashed = hashlib.sha256()
    last = b""
    first: dict[str, Any] = {}
    for number, line in enumerate(_lines(path)):
        if number == 0:
            first = _object(path, 1, line)
        hashed.update(last)
        last = line
    if first.get("type") != ANCHOR_TYPE:
        raise StoreError(f"{path}: line 1: type: not {ANCHOR_TYPE}")
    named = str(first.get("public_key"))
    signature = _object(path, None, last).get("signature")
    try:
        signer = key or Ed25519PublicKey.from_public_bytes(bytes.fromhex(named))
        signer.verify(bytes.fromhex(str(signature)), hashed.digest())
    except (InvalidSignature, ValueError) as error:
        raise StoreError(f"{path}: the signature is not that of the key") from error
    return named


def compare_with_anchor(connection: duckdb.DuckDBPyConnection, path: Path) -> Iterator[Divergence]:
    """What an anchor has and the logs of a store do not. Raises StoreError."""
    heads = _heads(path)
    while page := list(islice(heads, _PAGE_HEADS)):
        columns = [list(column) for column in zip(*page, strict=True)]
        for *place, digest, turn, found in connection.execute(_AT_HEADS, columns).fetchall():
            where = Where("log", *place)._replace(turn=turn)
            if found is None:
                problem = "is missing: the anchor has the log up to here"
                yield Divergence(where, None, problem)
            else:
                yield changed(where, "digest", digest, found)


def _heads(path: Path) -> Iterator[Head]:
    for number, line in enumerate(_lines(path), 1):
        fields = _object(path, number, line)
        if "sequence" in fields:
            try:
                yield Head(**fields)
            except TypeError as error:
                raise StoreError(f"{path}: line {number}: not a head of a log") from error


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _object(path: Path, number: int | None, line: bytes) -> dict[str, Any]:
    where = "the last line" if number is None else f"line {number}"
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise StoreError(f"{path}: {where}: no JSON") from error
    if not isinstance(fields, dict):
        raise StoreError(f"{path}: {where}: not an object")
    return fields


def _pem(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
