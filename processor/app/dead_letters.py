"""Dead letters of a one-process run: a file of the lines that could not be handled, and why."""

from __future__ import annotations

import base64
import codecs
import hashlib
import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self, final

import orjson

from processor.app.blame import blaming
from processor.app.interpret import DeadLetterClass
from processor.app.lines import KEPT_BYTES_MAX, Line, read_lines


@final
class DeadLetter(NamedTuple):
    """A line that could not be handled; `place` is the field to blame, or empty."""

    line: Line
    dead_letter_class: DeadLetterClass
    place: str
    problem: str

    @property
    def reason(self) -> str:
        """The place and the problem as one sentence."""
        return f"{self.place}: {self.problem}" if self.place else self.problem


@final
class DeadLetterFile:
    """Appends dead letters to `dead-letters.jsonl`; the file appears with the first of them.

    A letter that the file has already, from the same line of the same source, is not written again.
    Every method raises OSError with the name of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._known: set[bytes] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, source: str, letter: DeadLetter) -> None:
        """Append one letter with the bytes it came with, whole or their start and their hash."""
        said = as_json(source, letter)
        with blaming(str(self._path)):
            if self._file is None:
                self._file = self._open()
            key = _key(said)
            if key not in self._known:
                self._write(orjson.dumps(said) + b"\n")
                self._known.add(key)

    def _open(self) -> BinaryIO:
        """Open the file to append to it, and take in what it has."""
        if self._path.exists() and not self._path.is_file():
            raise OSError(0, "is not a regular file")
        file = self._path.open("ab", buffering=0)
        with self._path.open("rb") as written:
            self._known = {key for line in read_lines(written) if (key := _key_in(line))}
            size = written.tell()
            written.seek(max(size - 1, 0))
            if written.read() not in (b"", b"\n"):
                file.write(b"\n")  # a process that was killed left half a letter
        return file

    def _write(self, line: bytes) -> None:
        assert self._file is not None
        rest = memoryview(line)
        while rest:
            rest = rest[self._file.write(rest) :]


def as_json(source: str, letter: DeadLetter) -> dict[str, object]:
    """What the file says of one letter: text where the bytes are text, base64 where not."""
    line = letter.line
    original = line.start if line.content is None else line.content
    kept = original[:KEPT_BYTES_MAX]
    whole = line.content is not None and len(kept) == line.size
    said: dict[str, object] = {
        "source": os.fsencode(source).decode(errors="backslashreplace"),
        "line": line.number,
        "class": letter.dead_letter_class,
        "place": letter.place or None,
        "reason": letter.reason,
        "bytes": line.size,
        "truncated": not whole,
        "sha256": line.sha256 or hashlib.sha256(original).hexdigest(),
    }
    try:
        decoder = codecs.getincrementaldecoder("utf-8")()
        said["original"] = decoder.decode(kept, final=whole)
    except UnicodeDecodeError:
        said["original_base64"] = base64.b64encode(kept).decode()
    return said


def _key(said: dict[str, object]) -> bytes:
    """What makes two letters the same: where the line stood, and what it was."""
    named = f"{said.get('source')}\n{said.get('line')}\n{said.get('sha256')}"
    return hashlib.blake2b(named.encode(), digest_size=16).digest()


def _key_in(line: Line) -> bytes | None:
    """The key of a letter that was written before; None for what is no letter."""
    if line.content is None:
        return None
    try:
        said = orjson.loads(line.content)
    except orjson.JSONDecodeError:
        return None
    return _key(said) if isinstance(said, dict) else None
