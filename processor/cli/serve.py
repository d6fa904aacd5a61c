"""`standfast serve`: the pages of a store's conversations, to look at in a browser."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import structlog

from processor.app.archive_thread import ArchiveThread
from processor.app.pages.server import Place, serving
from processor.app.pages.source import Source
from processor.app.web.health import metrics_route
from processor.cli.kafka import AskedToStop, run_async
from processor.cli.key_file import key_file_option
from processor.cli.output import complain, flush, json_option, write_json
from processor.cli.store_path import StorePath

PORT = 8700


@click.command()
@click.option(
    "--db",
    type=StorePath(),
    required=True,
    help="A store or an archive that nobody is writing just now, or a folder of segments.",
)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True)
@click.option(
    "--tokens",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Who may look, as standfast token prints it; without it, this machine alone.",
)
@key_file_option
@json_option
def serve(db: Path, host: str, port: int, tokens: Path | None, as_json: bool) -> int:
    """Serve the conversations of a store as pages, tenant by tenant, until Ctrl-C.

    The file is opened for each question only, so it can be written in between; pages that are open
    then show what is new.
    """
    _tell_failures()
    source = Source(db)
    source.tenants()  # whether it can be used is said now

    async def work(stop: AskedToStop) -> None:
        async with serving(source, Place(host, port, tokens)) as address:
            _say_where(address, as_json=as_json)
            await stop.wait()

    run_async(work)
    return 0


@asynccontextmanager
async def serving_beside(
    archive: ArchiveThread,
    place: Place,
    metrics: Callable[[], bytes],
    *,
    as_json: bool,
) -> AsyncIterator[None]:
    """Serve what an archive copies: its file from within, since nobody else can open that."""
    _tell_failures()
    beside = await archive.beside()
    try:
        source = Source(archive.path, None if beside is None else beside.cursor)
        async with serving(source, place, [metrics_route(metrics)]) as address:
            _say_where(address, as_json=as_json)
            yield
    finally:
        if beside is not None:
            beside.close()


def _say_where(address: str, *, as_json: bool) -> None:
    """Say at once where the pages are: somebody waits for it."""
    if as_json:
        write_json({"address": address})
    else:
        click.echo(f"conversations at {address}")
    flush()


def _tell_failures() -> None:
    """A client is told that something failed, and standard error why, in one line; no other log."""
    only_errors = structlog.make_filtering_bound_logger(logging.ERROR)
    structlog.configure(processors=[_say_failure], wrapper_class=only_errors)


def _say_failure(_: object, __: str, event: MutableMapping[str, Any]) -> str:
    raised = event.get("exc_info")
    reason = type(raised).__name__ if isinstance(raised, BaseException) else ""
    complain(str(event.get("problem") or f"{event['event']} {reason}".strip()))
    raise structlog.DropEvent
