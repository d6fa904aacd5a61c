"""How sets of checkpoints are named and written where they are files: in a folder or a bucket.

Each set is one file of a partition. Files count upwards; the rest of a name tells apart what two
publishers wrote under one number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import final

from processor.app.shared_place import Keyed

FILES_MAX = 32
"""Of a partition, before a whole set replaces them."""
SUFFIX = ".checkpoint"
_DIGITS = 12
_LENGTH_BYTES = 4


def partition_name(partition: int) -> str:
    """The folder of a partition."""
    return f"partition-{partition}"


def new_stem(number: int) -> str:
    """The name of a new file, without SUFFIX."""
    return f"{number:0{_DIGITS}d}-{os.urandom(4).hex()}"


def is_set(name: str) -> bool:
    """Whether a file of that name is a set, whoever else writes there."""
    return name.endswith(SUFFIX) and name[:_DIGITS].isdecimal()


def number_of(name: str) -> int:
    """Which set of its partition a file is."""
    return int(name[:_DIGITS])


def end_of(names: Sequence[str]) -> int:
    """One more than the number of the newest of the files, which are in order."""
    return number_of(names[-1]) + 1 if names else 0


def to_bytes(record: Keyed) -> bytes:
    """A record as it stands in a file."""
    return b"".join(part for each in record for part in (len(each).to_bytes(_LENGTH_BYTES), each))


@final
class RecordReader:
    """Takes in a file piece by piece; a file that was cut ends in a record that is none."""

    def __init__(self) -> None:
        self._waiting = b""

    def take(self, piece: bytes) -> Iterator[Keyed]:
        """The records that are whole with this piece."""
        content, at = self._waiting + piece, 0
        while True:
            key, after_key = _part(content, at)
            value, end = _part(content, after_key)
            if end > len(content):
                break
            yield key, value
            at = end
        self._waiting = content[at:]

    def rest(self) -> Iterator[Keyed]:
        """What is left at the end of the file."""
        if self._waiting:
            key, after_key = _part(self._waiting, 0)
            yield key, _part(self._waiting, after_key)[0]


def _part(content: bytes, at: int) -> tuple[bytes, int]:
    """A length and what is of that length, as far as it is there, and where it ends."""
    start = at + _LENGTH_BYTES
    if start > len(content):
        return b"", start
    end = start + int.from_bytes(content[at:start])
    return content[start:end], end
