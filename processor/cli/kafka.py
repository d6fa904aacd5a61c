"""What the commands that connect to Kafka share."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

from processor.app.settings import KAFKA_PREFIX
from processor.cli.stop import ASKED_BY

T = TypeVar("T")

bootstrap_option = click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    help=f"The brokers; without it, {KAFKA_PREFIX}BOOTSTRAP. How to connect with a password or "
    f"TLS is read from {KAFKA_PREFIX}SECURITY_PROTOCOL, _USERNAME, _PASSWORD, _SSL_CAFILE.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class AskedToStop(asyncio.Event):
    """Set by a signal that asks the command to stop; `by` says which came first."""

    by: signal.Signals | None = None

    def ask(self, number: signal.Signals) -> None:
        """Remember the signal; the command ends by itself."""
        self.by = self.by or number
        self.set()


def run_async(work: Callable[[AskedToStop], Coroutine[Any, Any, T]]) -> T:
    """Run `work` to its end. Signals that were ignored, as under nohup, stay ignored."""
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())  # failures are our one line

    async def with_signals() -> T:
        stop = AskedToStop()
        loop = asyncio.get_running_loop()
        for number in ASKED_BY:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                loop.add_signal_handler(number, stop.ask, number)
        return await work(stop)

    return asyncio.run(with_signals())
