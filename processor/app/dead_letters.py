"""Dead letters of a one-process run: a file of the lines that could not be handled, and why."""

from __future__ import annotations

import base64
import codecs
import hashlib
from pathlib import Path
from typing import BinaryIO, NamedTuple, final

import orjson

from processor.app.interpret import DeadLetterClass
from processor.app.lines import KEPT_BYTES_MAX, Line


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
    """Appends dead letters to `dead-letters.jsonl`; the file appears with the first of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def write(self, source: str, letter: DeadLetter) -> None:
        """Append one letter with the bytes it came with, whole or their start and their hash."""
        if self._file is None:
            self._file = self._path.open("ab")
        self._file.write(orjson.dumps(as_json(source, letter)) + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file if there is one."""
        if self._file is not None:
            self._file.close()
            self._file = None


def as_json(source: str, letter: DeadLetter) -> dict[str, object]:
    """What the file says of one letter: text where the bytes are text, base64 where not."""
    line = letter.line
    original = line.start if line.content is None else line.content
    kept = original[:KEPT_BYTES_MAX]
    whole = line.content is not None and len(kept) == line.size
    said: dict[str, object] = {
        "source": source,
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
