"""Input that comes slowly: what is there is read, and nothing else waits."""

from __future__ import annotations

import io
import os
from contextlib import nullcontext

import pytest

from processor.app.lines import read_lines
from processor.app.live_input import LiveInput, buffered


class _GivenUpError(Exception):
    """Ends the wait of a test."""


def test_a_line_is_handed_on_before_the_next_one_comes() -> None:
    """Reading does not wait for more than the line that it hands on, whole or in pieces."""
    reading, writing = os.pipe()
    pieces = [b"tw", b"o\nthree\n"]

    def idle() -> None:
        os.write(writing, pieces.pop(0))

    with io.FileIO(reading) as file:
        lines = read_lines(buffered(LiveInput(file, "a pipe", idle)))
        os.write(writing, b"one\n")
        assert next(lines).content == b"one"
        assert len(pieces) == 2
        assert next(lines).content == b"two"
        assert next(lines).content == b"three"
        os.close(writing)
        assert list(lines) == []


def test_the_wait_can_be_given_up() -> None:
    """What `idle` raises ends the reading, and no half line is taken for a whole one."""
    reading, writing = os.pipe()

    def idle() -> None:
        raise _GivenUpError

    with io.FileIO(reading) as file:
        os.write(writing, b"one\nhal")
        lines = read_lines(buffered(LiveInput(file, "a pipe", idle)))
        assert next(lines).content == b"one"
        with pytest.raises(_GivenUpError):
            next(lines)
    os.close(writing)


def test_a_failure_names_the_input() -> None:
    """A descriptor that cannot be read is blamed under the name that the user knows."""
    reading, writing = os.pipe()
    with io.FileIO(writing, "w") as file:
        live = LiveInput(file, "standard input", lambda: None, nullcontext)
        os.close(reading)
        with pytest.raises(OSError, match="standard input") as failed:
            live.read(1)
    assert failed.value.filename == "standard input"
