"""Lines of a blocking stream for an event loop: a thread reads, the loop never waits for it.

Somebody may type at the other end of the pipe: the brokers are served meanwhile, and Ctrl-C ends
the wait for a line that does not come.
"""

from __future__ import annotations

import asyncio
import io
import threading
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress

from processor.app.lines import Line, read_lines
from processor.app.live_input import LiveInput, buffered

LINES_AHEAD_MAX = 1_000
_LOOK_SECONDS = 0.2


class _Over(Exception):  # noqa: N818 - nothing is wrong: nobody asks for more lines
    """Ends the thread that reads."""


async def feed_lines(
    file: io.FileIO, name: str, stopped: asyncio.Event
) -> AsyncGenerator[Line, None]:
    """The lines of a file until its end, or until it is stopped. Raises OSError with its name."""
    loop = asyncio.get_running_loop()
    over = threading.Event()
    arrived = asyncio.Event()
    room = threading.Semaphore(LINES_AHEAD_MAX)
    lines: deque[Line] = deque()

    def read() -> None:
        with suppress(_Over):
            for line in read_lines(buffered(LiveInput(file, name, end_when_over))):
                room.acquire()
                end_when_over()
                lines.append(line)
                loop.call_soon_threadsafe(arrived.set)

    def end_when_over() -> None:
        if over.is_set():
            raise _Over

    reading = asyncio.create_task(asyncio.to_thread(read))
    reading.add_done_callback(lambda _: arrived.set())
    try:
        while not stopped.is_set():
            while lines and not stopped.is_set():
                yield lines.popleft()
                room.release()
            if reading.done() and not lines:
                break
            arrived.clear()
            if not lines and not reading.done():
                await _wait(arrived)
    finally:
        over.set()
        room.release()
        await reading  # raises what reading raised


async def _wait(arrived: asyncio.Event) -> None:
    """Until a line arrived, or a moment, after which it is time to look whether it is stopped."""
    try:
        async with asyncio.timeout(_LOOK_SECONDS):
            await arrived.wait()
    except TimeoutError:
        pass
