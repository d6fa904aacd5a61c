"""How commands print JSON and text that may be hostile."""

from __future__ import annotations

import sys

import orjson

from schemas.derived import DerivedEvent
from schemas.wire import canonical_bytes


def event_line(event: DerivedEvent) -> bytes:
    """One derived event as `{"type": ..., "data": {...}}`."""
    return orjson.dumps({"type": event.TYPE, "data": orjson.Fragment(canonical_bytes(event))})


class ReaderGone(Exception):  # noqa: N818 - nothing is wrong: nobody reads our output any more
    """The reader of standard output went away, as `head` does; there is nothing more to say."""


def write_line(line: bytes) -> None:
    """One line to standard output. Raises ReaderGone."""
    try:
        sys.stdout.buffer.write(line + b"\n")
    except BrokenPipeError as gone:
        raise ReaderGone from gone


class Progress:
    """How far long work is, on standard error, and only if that is a terminal."""

    _EVERY = 500

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown and sys.stderr.isatty()
        self._done = 0

    def step(self) -> None:
        """One more line is done."""
        self._done += 1
        if self._shown and self._done % self._EVERY == 0:
            sys.stderr.write(f"\r{self._done:,} lines")
            sys.stderr.flush()

    def close(self) -> None:
        """Clear the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")


def flush() -> None:
    """Write out what is waiting for standard output. Raises ReaderGone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError as gone:
        raise ReaderGone from gone


def write_json(value: object) -> None:
    """One value as canonical JSON on a line of its own."""
    write_line(canonical_bytes(value))


def printable(text: str) -> str:
    """Text without anything that could steer a terminal or break a line."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in text.replace("\n", " ").replace("\t", " ")
    )
