"""Lines reach the event loop as they come, and the wait for them ends when it is asked to."""

from __future__ import annotations

import asyncio
import io
import os
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from processor.app.line_feed import LINES_AHEAD_MAX, feed_lines

SECONDS_MAX = 10.0


async def contents(path: Path) -> list[bytes | None]:
    """All lines of a file."""
    with io.FileIO(path) as file:
        return [line.content async for line in feed_lines(file, path.name, asyncio.Event())]


@pytest.mark.parametrize("count", [0, 1, LINES_AHEAD_MAX, 3 * LINES_AHEAD_MAX + 1])
def test_every_line_comes_once_and_in_order(tmp_path: Path, count: int) -> None:
    """However many lines there are, all of them come, the last one too without its end."""
    source = tmp_path / "lines"
    source.write_bytes(b"\n".join(b"%d" % number for number in range(count)))
    assert asyncio.run(contents(source)) == [b"%d" % number for number in range(count)]


def test_a_line_comes_before_the_next_is_written() -> None:
    """At the other end of a pipe somebody types: the first line is there at once."""

    async def read() -> None:
        reader, writer = os.pipe()
        with io.FileIO(reader) as file:
            async with aclosing(feed_lines(file, "pipe", asyncio.Event())) as lines:
                for number in range(3):
                    os.write(writer, b"%d\n" % number)
                    async with asyncio.timeout(SECONDS_MAX):
                        assert (await anext(lines)).content == b"%d" % number
                os.close(writer)
                async with asyncio.timeout(SECONDS_MAX):
                    assert await anext(lines, None) is None

    asyncio.run(read())


@pytest.mark.parametrize("through_the_event", [True, False])
def test_the_wait_for_a_line_can_be_ended(through_the_event: bool) -> None:
    """Nothing is typed any more: a signal ends the wait, and so does whoever reads no further."""

    async def read() -> None:
        reader, writer = os.pipe()
        stopped = asyncio.Event()
        with io.FileIO(reader) as file:
            async with aclosing(feed_lines(file, "pipe", stopped)) as lines:
                os.write(writer, b"first\n")
                await anext(lines)
                if through_the_event:
                    asyncio.get_running_loop().call_later(0.1, stopped.set)
                    assert await anext(lines, None) is None
        os.close(writer)

    began = time.monotonic()
    asyncio.run(read())
    assert time.monotonic() - began < SECONDS_MAX


def test_whoever_stops_early_leaves_no_thread_behind(tmp_path: Path) -> None:
    """With far more lines waiting than are kept ready, leaving after the first one returns."""
    source = tmp_path / "lines"
    source.write_bytes(b"line\n" * 10 * LINES_AHEAD_MAX)

    async def read_one() -> None:
        with io.FileIO(source) as file:
            async with aclosing(feed_lines(file, "lines", asyncio.Event())) as lines:
                await anext(lines)
                await asyncio.sleep(0.1)

    asyncio.run(asyncio.wait_for(read_one(), SECONDS_MAX))


def test_a_failure_to_read_names_the_input(tmp_path: Path) -> None:
    """A folder cannot be read: the error says which."""

    async def read() -> None:
        descriptor = os.open(tmp_path, os.O_RDONLY)
        with io.FileIO(os.devnull) as file:
            os.dup2(descriptor, file.fileno())
            async for _ in feed_lines(file, "a-folder", asyncio.Event()):
                pass
        os.close(descriptor)

    with pytest.raises(OSError, match="a-folder"):
        asyncio.run(read())
