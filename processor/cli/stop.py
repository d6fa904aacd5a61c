"""Signals that ask a run to stop: it finishes what it has begun, commits, and says so."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self, final

ASKED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_SECONDS = 1.0
"""Asked again after this, a run ends where it is; `timeout` and terminals may send two at once."""


def end_at_once_when_interrupted() -> None:
    """Without a traceback: until a run takes over, nothing is begun that must be finished."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


class Stopped(Exception):  # noqa: N818 - nothing is wrong: somebody asked for it
    """The run was asked to stop by `signal`."""

    def __init__(self, number: int) -> None:
        self.signal = signal.Signals(number)
        super().__init__(self.signal.name)


@final
class Stop:
    """While it is open, a signal is remembered instead of ending the process.

    Signals that were ignored when the process began, as under nohup, stay ignored.
    """

    def __init__(self) -> None:
        self._asked: int | None = None
        self._asked_at = 0.0
        self._raises = False
        handlers = {number: signal.getsignal(number) for number in ASKED_BY}
        self._before = {
            number: handler
            for number, handler in handlers.items()
            if handler not in (signal.SIG_IGN, None)
        }

    def __enter__(self) -> Self:
        for number in self._before:
            signal.signal(number, self._ask)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise Stopped if a signal came."""
        if self._asked is not None:
            raise Stopped(self._asked)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, a signal raises Stopped where it finds us: for what may stay half done."""
        self.check()
        try:
            self._raises = True
            yield
        finally:
            self._raises = False

    def _ask(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._asked is None:
            self._asked, self._asked_at = number, now
        elif now - self._asked_at > PATIENCE_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        if self._raises:
            raise Stopped(self._asked)
