"""Reads a file of any length line by line in bounded memory."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, final

from schemas.contract import UTTERANCE_BYTES_MAX

_CHUNK = 65_536
KEPT_BYTES_MAX = 65_536
"""How much of a line that is too long is kept to show what it was."""


@final
class Line(NamedTuple):
    """One line without its end.

    `content` is None if the line is too long; then `start` are its first bytes. `size` counts the
    bytes of the whole line and `sha256` is their hash, given only for a line that is too long.
    """

    number: int
    content: bytes | None
    size: int
    start: bytes = b""
    sha256: str = ""


def read_lines(stream: BinaryIO, limit: int = UTTERANCE_BYTES_MAX) -> Iterator[Line]:
    """The lines that are not blank, numbered from 1 as editors do; none is held beyond `limit`.

    A byte order mark at the start, which some editors write, is passed over.
    """
    number = 0
    while first := stream.readline(limit + 1):
        number += 1
        if len(first) <= limit or first.endswith(b"\n"):
            content = first.rstrip(b"\r\n")
            if number == 1:
                content = content.removeprefix(codecs.BOM_UTF8)
            if content.strip():
                yield Line(number, content, len(content))
            continue
        yield _skip_rest(stream, number, first)


def _skip_rest(stream: BinaryIO, number: int, first: bytes) -> Line:
    """Read on to the end of a line that is too long, keeping its hash and its first bytes."""
    digest = hashlib.sha256(first)
    size = len(first)
    while chunk := stream.readline(_CHUNK):
        body = chunk.rstrip(b"\r\n") if chunk.endswith(b"\n") else chunk
        digest.update(body)
        size += len(body)
        if chunk.endswith(b"\n"):
            break
    return Line(number, None, size, first[:KEPT_BYTES_MAX], digest.hexdigest())
