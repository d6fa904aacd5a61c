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
from processor.vault.errors import KeyDestroyedError
from processor.vault.sealed import Kind
from processor.vault.vault import Vault
from replay.archive_batch import conversation_of


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

    def __init__(self, path: Path, vault: Vault | None = None) -> None:
        self._path = path
        self._vault = vault
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
        if self._vault is not None:
            said = sealed(self._vault, said, letter)
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


def sealed(vault: Vault, said: dict[str, object], letter: DeadLetter) -> dict[str, object]:
    """A letter with what was said sealed; without it, if it is of no conversation.

    Raises KeysAwayError.
    """
    told = dict(said)
    hidden = {
        name: told.pop(name)
        for name in ("place", "reason", "original", "original_base64")
        if name in told
    }
    withheld = {"sha256": None, "withheld": True}  # a hash would tell a guess from the truth
    ids = _conversation_in(letter.line.content)
    if ids is None or letter.dead_letter_class is DeadLetterClass.ERASED:
        return told | withheld
    try:
        stored = vault.seal(Kind.LETTER, *ids, orjson.dumps(hidden))
    except KeyDestroyedError:
        return told | withheld
    return told | {
        "tenant_id": ids[0],
        "conversation_id": ids[1],
        "sha256": hashlib.sha256(stored).hexdigest(),
        "sealed": base64.b64encode(stored).decode(),
    }


def _conversation_in(content: bytes | None) -> tuple[str, str] | None:
    """The conversation that a line names, if it says so legibly."""
    try:
        said = orjson.loads(content or b"")
    except orjson.JSONDecodeError:
        return None
    if not isinstance(said, dict):
        return None
    named = (said.get("tenant_id", "default"), said.get("conversation_id"))
    if not all(isinstance(each, str) for each in named):
        return None
    tenant_id, conversation_id = conversation_of("/".join(map(str, named)).encode())
    if tenant_id is None or conversation_id is None:
        return None
    return tenant_id, conversation_id


def _key(said: dict[str, object]) -> bytes:
    """What makes two letters the same: where the line stood, and what it was."""
    told = said.get("sha256") or f"{said.get('class')} {said.get('bytes')}"
    named = f"{said.get('source')}\n{said.get('line')}\n{told}"
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
