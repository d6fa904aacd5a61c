"""How commands print: JSON, text that may be hostile, and the one line on what went wrong."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click
import orjson

from schemas.derived import DerivedEvent
from schemas.wire import canonical_bytes

STDOUT, STDERR = 1, 2

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class ReaderGone(Exception):  # noqa: N818 - nothing is wrong: nobody reads our output any more
    """The reader of standard output went away, as `head` does; there is nothing more to say."""


class OutputError(Exception):
    """Standard output cannot be written; `str(error)` is one line that says why."""


class _StandardOutput(io.TextIOWrapper):
    """Standard output whose failures have names, so that rich and click cannot mistake them."""

    def write(self, text: str) -> int:
        with _named_failures():
            return super().write(text)

    def flush(self) -> None:
        with _named_failures():
            super().flush()


def prepare_streams() -> None:
    """Make the standard streams fit for use. Raises OutputError if there is no standard output.

    A descriptor that was closed is opened on nothing: else the next file would take its number, and
    get what a library prints. What the encoding of the output does not have is escaped.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    if sys.stdout is None:
        raise OutputError("standard output is closed")
    assert isinstance(sys.stdout, io.TextIOWrapper)
    encoding, is_terminal = sys.stdout.encoding, sys.stdout.isatty()
    binary = sys.stdout.detach()
    if isinstance(binary, io.RawIOBase):  # PYTHONUNBUFFERED; a raw file may write half of a line
        binary = io.BufferedWriter(binary)
    sys.stdout = _StandardOutput(binary, encoding, "backslashreplace", line_buffering=is_terminal)


def complain(problem: str) -> None:
    """One line on standard error, whatever the text holds; silence if it cannot be written."""
    encoding = "utf-8" if sys.stderr is None else sys.stderr.encoding
    line = f"standfast: {printable(problem)}\n".encode(encoding, "backslashreplace")
    with suppress(OSError):
        os.write(STDERR, line)


def event_line(event: DerivedEvent) -> bytes:
    """One derived event as `{"type": ..., "data": {...}}`."""
    return orjson.dumps({"type": event.TYPE, "data": orjson.Fragment(canonical_bytes(event))})


def write_line(line: bytes) -> None:
    """One line to standard output. Raises ReaderGone or OutputError."""
    with _named_failures():
        sys.stdout.buffer.write(line + b"\n")


def flush() -> None:
    """Write out what is waiting for standard output. Raises ReaderGone or OutputError."""
    with _named_failures():
        sys.stdout.flush()


def write_json(value: object) -> None:
    """One value as canonical JSON on a line of its own. Raises ReaderGone or OutputError."""
    write_line(canonical_bytes(value))


def printable(text: str) -> str:
    """Text without anything that could steer a terminal or break a line."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for character in text.replace("\n", " ").replace("\t", " ")
    )


class Progress:
    """How far long work is, on standard error, and only if that is a terminal."""

    def __init__(self, *, shown: bool, noun: str = "lines", every: int = 500) -> None:
        self._shown = shown and sys.stderr is not None and sys.stderr.isatty()
        self._noun = noun
        self._every = every
        self._done = 0

    def step(self, count: int = 1) -> None:
        """One more is done, or several."""
        before = self._done // self._every
        self._done += count
        if self._shown and self._done // self._every > before:
            sys.stderr.write(f"\r{self._done:,} {self._noun}")
            sys.stderr.flush()

    def close(self) -> None:
        """Clear the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")


@contextmanager
def _named_failures() -> Iterator[None]:
    """Name the failure, once: what waits to be written then, or is said later, goes nowhere."""
    try:
        yield
    except BrokenPipeError as gone:
        _discard_output()
        raise ReaderGone from gone
    except OSError as error:
        _discard_output()
        raise OutputError(f"standard output: {error.strerror}") from error


def _discard_output() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    os.close(nowhere)
