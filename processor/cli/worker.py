"""`standfast worker`: folds what the topics bring, until it is asked to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import threading
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import click
import structlog

from processor.app.embedded_broker import EmbeddedBroker
from processor.app.endpoint_watch import watching
from processor.app.errors import BrokerError
from processor.app.interpreter_settings import InterpreterSettings
from processor.app.interpreters import open_interpreter
from processor.app.local_store import LocalStore
from processor.app.logs import configure_logs
from processor.app.sender import Sender
from processor.app.settings import (
    KafkaSettings,
    WorkerSettings,
    interpreter_settings,
    kafka_settings,
    worker_settings,
)
from processor.app.topics import Layout, Mismatch, check
from processor.app.tracing import closing_traces
from processor.app.web.health import metrics_route
from processor.app.web.server import WebServer
from processor.app.worker import Worker
from processor.app.worker_keys import WorkerKeys
from processor.cli.errors import BadInputError
from processor.cli.kafka import AskedToStop, bootstrap_option, run_async
from processor.cli.output import complain, write_json
from processor.interpreter.port import Interpreter
from processor.vault.errors import KeyFileError, KeysAwayError
from processor.vault.tenant_keys import KeyFile
from replay.errors import StoreError
from replay.sealing import KEY_FILE

_log = structlog.get_logger(__name__)

CLOSE_SECONDS_MAX = 10.0
GARBAGE_YOUNG = 20_000
"""After how many more new objects than freed ones the interpreter looks for garbage in cycles."""
SWITCH_SECONDS = 0.0005
"""How long a thread goes on while another wants to."""
RESTART_SECONDS_MAX = 60.0
"""How long a broker that does not answer properly is waited for at the start."""


@click.command()
@bootstrap_option
@click.option("--embedded-broker", is_flag=True, help="Start a broker in memory, for a try-out.")
@click.option(
    "--store", type=click.Path(dir_okay=False, path_type=Path), help="This worker's own file."
)
@click.option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar=["STANDFAST_WORKER_KEY_FILE", KEY_FILE],
    help="Seal what is kept for ever with the keys in this file; see keys create.",
)
@click.option("--print-settings", is_flag=True, help="Print the settings and end; no secrets.")
def worker(
    bootstrap: str | None,
    embedded_broker: bool,
    store: Path | None,
    key_file: Path | None,
    print_settings: bool,
) -> int:
    """Interpret and reduce the conversations of the partitions that the group gives it.

    Settings are read from STANDFAST_WORKER_..., STANDFAST_KAFKA_... and STANDFAST_INTERPRETER_...
    """
    given = {"store": store, "key_file": key_file}
    settings = worker_settings({name: path for name, path in given.items() if path is not None})
    reads = interpreter_settings({})
    if embedded_broker:
        broker = EmbeddedBroker()
        kafka = kafka_settings(broker.bootstrap)
    else:
        kafka = kafka_settings(bootstrap)
    if print_settings:
        shown = {"worker": settings, "kafka": kafka, "interpreter": reads}
        write_json({name: each.model_dump(mode="json") for name, each in shown.items()})
        return 0
    configure_logs(settings.log_level.number)
    return run_async(lambda stop: serve(settings, kafka, stop, reads, embedded=embedded_broker))


async def serve(
    settings: WorkerSettings,
    kafka: KafkaSettings,
    stop: AskedToStop,
    reads: InterpreterSettings,
    *,
    embedded: bool = False,
    interpreter: Interpreter | None = None,
) -> int:
    """Run one worker until it is asked to stop, and drain it; the exit status."""
    seconds = settings.drain_seconds_max
    _end_in_any_case(stop, seconds + CLOSE_SECONDS_MAX)
    async with AsyncExitStack() as stack:
        asked: asyncio.Future[Any] = asyncio.create_task(stop.wait())
        starting = asyncio.create_task(_begin(stack, settings, kafka, reads, embedded, interpreter))
        either: list[asyncio.Future[Any]] = [asked, starting]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            complain("asked to stop before it had started; nothing was in hand")
            _leave(0)
        running, web = starting.result()
        await asyncio.wait([asked, running.failed], return_when=asyncio.FIRST_COMPLETED)
        if running.failed.done():
            asked.cancel()
            failure = running.failed.exception()
            _log.error("worker_failed", exc_info=failure)
            with suppress(TimeoutError, StoreError):
                async with asyncio.timeout(CLOSE_SECONDS_MAX):
                    await stack.aclose()
            complain(f"{type(failure).__name__}: {failure}")
            _leave(1)
        try:
            async with asyncio.timeout(seconds):
                await web.stop()
                await running.drain()
                await stack.aclose()
        except TimeoutError:
            complain(f"not drained in {seconds:g} s; what is in hand comes again")
            _leave(1)
    return 0


async def _begin(
    stack: AsyncExitStack,
    settings: WorkerSettings,
    kafka: KafkaSettings,
    reads: InterpreterSettings,
    embedded: bool,
    interpreter: Interpreter | None,
) -> tuple[Worker, WebServer]:
    """A worker that has joined its group, and its server; `stack` closes all it needs."""
    tenant_keys = _tenant_keys(settings)
    if not embedded:
        await _require_topics(settings, kafka)
    sender = await stack.enter_async_context(Sender(kafka.client_options()))
    keys = None
    if tenant_keys is not None:
        keys = WorkerKeys(tenant_keys, kafka.client_options(), sender)
    vault = None if keys is None else keys.vault
    store = await stack.enter_async_context(LocalStore(settings.store, settings.records_max, vault))
    if embedded:
        for _, topic in Layout().topics():
            await sender.partitions(topic.name)  # which makes it
        click.echo(f"broker {kafka.bootstrap}")
        sys.stdout.flush()
    traces = stack.enter_context(closing_traces())
    opened = await stack.enter_async_context(open_interpreter(reads))
    reader = interpreter if opened is None else opened.interpreter
    running = Worker(
        *(settings, kafka, store, sender, reader, traces, reads.outage_seconds_max, keys)
    )
    if opened is not None:
        stack.enter_context(watching(opened.model, running.note_endpoint, running.failed))
    routes = [metrics_route(running.metrics.text)]
    on_lag = running.metrics.loop_lag
    server = WebServer(settings, running.conversations, routes, running.tenants, on_lag, traces)
    web = await stack.enter_async_context(server)
    await running.start()
    if settings.key_file is None and not embedded:
        _log.warning("kept_in_the_clear", reason="no key file: nothing can be erased")
    _tune_interpreter()
    return running, web


def _tenant_keys(settings: WorkerSettings) -> KeyFile | None:
    """The key file of the settings; one that is away is waited for. Raises BadInputError."""
    if settings.key_file is None:
        return None
    keys = KeyFile(settings.key_file)
    try:
        keys.check()
    except KeyFileError as unfit:
        raise BadInputError(str(unfit)) from unfit
    except KeysAwayError as away:
        _log.warning("keys_waited_for", problem=str(away))
    return keys


def _tune_interpreter() -> None:
    """Look for garbage in cycles less often: what is worked on lives long, and has few of them.

    And let the event loop have its turn sooner when the store's thread or the consumer's works.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_YOUNG, *gc.get_threshold()[1:])
    sys.setswitchinterval(SWITCH_SECONDS)


async def _require_topics(settings: WorkerSettings, kafka: KafkaSettings) -> None:
    """Refuse to start on topics that are not as they should be."""
    layout = Layout(
        None,
        settings.replication,
        tuple(sorted(settings.alert_tenants)),
        settings.erasure_window_days,
    )
    mismatches = await _check_patiently(kafka, layout)
    if mismatches:
        raise BadInputError(
            f"{mismatches[0]} (and {len(mismatches) - 1} more); see standfast topics check"
            if len(mismatches) > 1
            else f"{mismatches[0]}; see standfast topics check"
        )


async def _check_patiently(kafka: KafkaSettings, layout: Layout) -> tuple[Mismatch, ...]:
    """Check the topics, again for some time while a broker restarts."""
    deadline = time.monotonic() + RESTART_SECONDS_MAX
    while True:
        try:
            return await check(kafka, layout)
        except BrokerError as failure:
            if not failure.is_passing or time.monotonic() > deadline:
                raise
            _log.warning("broker_waited_for", error=str(failure))
            await asyncio.sleep(1)


def _leave(status: int) -> None:
    """End the process now: threads of a broken connection may never end by themselves."""
    logging.shutdown()
    os._exit(status)


def _end_in_any_case(stop: AskedToStop, seconds: float) -> None:
    """Some time after it was asked to stop the process ends, whatever the event loop does then."""

    def end() -> None:
        stop.at_once.wait()
        time.sleep(seconds)
        os._exit(1)  # nothing that could wait for a thread of ours, or for who reads the log

    threading.Thread(target=end, name="deadline", daemon=True).start()
