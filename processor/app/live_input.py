"""Input that may come slowly: nothing else waits while it does."""

from __future__ import annotations

import io
import select
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, final

from processor.app.blame import blaming

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TICK_SECONDS = 0.2
_READ_BYTES = 65_536


@final
class LiveInput(io.RawIOBase):
    """A file that hands on what there is as soon as it is there.

    While nothing comes, `idle` is called once a tick. It may raise, and so may what interrupts the
    wait, which happens inside `waiting()`.
    """

    def __init__(
        self,
        file: io.FileIO,
        name: str,
        idle: Callable[[], None],
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._file = file
        self._name = name
        self._idle = idle
        self._waiting = waiting
        self._poll = select.poll()
        self._poll.register(file, select.POLLIN)

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """At least one byte, or none at the end. Raises OSError with the name of the input."""
        while (count := self._read(buffer)) is None:
            self._idle()
        return count

    def _read(self, buffer: WriteableBuffer) -> int | None:
        with self._waiting():
            is_ready = self._poll.poll(TICK_SECONDS * 1_000)
        if not is_ready:
            return None
        with blaming(self._name):
            return self._file.readinto(buffer)


def buffered(live: LiveInput) -> io.BufferedReader:
    """The same, to be read by lines."""
    return io.BufferedReader(live, _READ_BYTES)
