"""A real worker with the scripted model, that may kill itself where it is told to.

`python -m tests.faults.scripted_worker`; STANDFAST_FAULT is `point:count`: the process kills itself
-9 when it comes to that point for the count-th time. With STANDFAST_FAULT_BLOCKS it does nothing
any more from then on.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from processor.app.local_store import LocalStore
from processor.app.logs import configure_logs
from processor.app.messages import DERIVED_TOPICS, KEYS, OPERATIONS, Outgoing
from processor.app.sender import Sender
from processor.app.settings import interpreter_settings, kafka_settings, worker_settings
from processor.cli.kafka import run_async
from processor.cli.worker import serve
from processor.interpreter.port import Interpreter
from tests.faults.endpoint import AskingInterpreter
from tests.faults.script import ScriptedInterpreter

BLOCKED = "the event loop is blocked"
DERIVED = frozenset(DERIVED_TOPICS.values())


def _killer(count: int) -> Callable[[], None]:
    left = [count]

    def reached() -> None:
        left[0] -= 1
        if left[0] == 0 and os.environ.get("STANDFAST_FAULT_BLOCKS"):
            print(BLOCKED, file=sys.stderr, flush=True)
            time.sleep(3_600)
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


def _after_sending_to(topic: str) -> Callable[[Callable[[], None]], None]:
    def arm(reached: Callable[[], None]) -> None:
        send = Sender.send

        async def killing(self: Sender, message: Outgoing) -> int:
            offset = await send(self, message)
            if message.topic == topic:
                reached()
            return offset

        Sender.send = killing  # type: ignore[method-assign]

    return arm


def _before_the_emit(reached: Callable[[], None]) -> None:
    begin = Sender.begin

    async def killing(self: Sender, message: Outgoing) -> Any:
        if message.topic in DERIVED:
            reached()
        return await begin(self, message)

    Sender.begin = killing  # type: ignore[method-assign]


def _in_recovery(reached: Callable[[], None]) -> None:
    positions = LocalStore.positions

    async def killing(self: LocalStore, partitions: Any) -> Any:
        found = await positions(self, partitions)
        reached()
        return found

    LocalStore.positions = killing  # type: ignore[method-assign]


def _in_a_rebalance(reached: Callable[[], None]) -> None:
    forget = LocalStore.forget_conversations

    def killing(self: LocalStore) -> None:
        forget(self)
        reached()

    LocalStore.forget_conversations = killing  # type: ignore[method-assign]


def _before_the_write(reached: Callable[[], None]) -> None:
    flush = LocalStore.flush

    async def killing(self: LocalStore) -> None:
        reached()
        await flush(self)

    LocalStore.flush = killing  # type: ignore[method-assign]


POINTS = {
    "append": _after_sending_to(OPERATIONS),
    "key": _after_sending_to(KEYS),
    "emit": _before_the_emit,
    "recovery": _in_recovery,
    "rebalance": _in_a_rebalance,
    "write": _before_the_write,
}


def main() -> None:
    """Run the worker as the command does."""
    fault = os.environ.get("STANDFAST_FAULT", "")
    if fault:
        point, _, count = fault.partition(":")
        POINTS[point](_killer(int(count)))
    endpoint = os.environ.get("STANDFAST_SCRIPT_ENDPOINT")
    interpreter: Interpreter = (
        ScriptedInterpreter(float(os.environ.get("STANDFAST_SCRIPT_SECONDS_MAX", "0.2")))
        if endpoint is None
        else AskingInterpreter(endpoint)
    )
    configure_logs()
    settings, kafka, reads = worker_settings({}), kafka_settings(), interpreter_settings({})
    sys.exit(run_async(lambda stop: serve(settings, kafka, stop, reads, interpreter=interpreter)))


if __name__ == "__main__":
    main()
