"""What the commands that connect to Kafka share."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

import click

from processor.app.settings import KAFKA_PREFIX
from processor.cli.stop import ASKED_BY, PATIENCE_SECONDS

T = TypeVar("T")

bootstrap_option = click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    help=f"The brokers; without it, {KAFKA_PREFIX}BOOTSTRAP. How to connect with a password or "
    f"TLS is read from {KAFKA_PREFIX}SECURITY_PROTOCOL, _USERNAME, _PASSWORD, _SSL_CAFILE.",
)

_NOT_OURS = (signal.SIG_IGN, None)


class AskedToStop(asyncio.Event):
    """Set by a signal that asks the command to stop; `by` says which came first.

    `at_once` is set by the signal itself, even if the event loop does nothing any more.
    """

    def __init__(self) -> None:
        super().__init__()
        self.by: signal.Signals | None = None
        self.at_once = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._asked_at = 0.0

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal; the command ends by itself, or where it is if asked again later."""
        del frame
        if self.by is None:
            self.by, self._asked_at = signal.Signals(number), time.monotonic()
            self.at_once.set()
            self._loop.call_soon_threadsafe(self.set)
        elif time.monotonic() - self._asked_at > PATIENCE_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)


def run_async(work: Callable[[AskedToStop], Coroutine[Any, Any, T]]) -> T:
    """Run `work` to its end. Signals that were ignored, as under nohup, stay ignored."""
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())  # failures are our one line

    async def with_signals() -> T:
        stop = AskedToStop()
        before = {number: signal.getsignal(number) for number in ASKED_BY}
        ours = [number for number, handler in before.items() if handler not in _NOT_OURS]
        for number in ours:
            signal.signal(number, stop.handle)
        try:
            return await work(stop)
        finally:
            for number in ours:
                signal.signal(number, before[number])

    return asyncio.run(with_signals())
