"""`standfast archive`: every message of the topics, kept in a file."""

from __future__ import annotations

import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click
import structlog

from processor.app.archive import Copier
from processor.app.archive_keys import sealing
from processor.app.archive_thread import ArchiveThread
from processor.app.restore import Restorer
from processor.app.settings import kafka_settings
from processor.cli.errors import BadInputError
from processor.cli.kafka import AskedToStop, bootstrap_option, run_async
from processor.cli.key_file import key_file_option
from processor.cli.output import Progress, complain, json_option, write_json
from processor.cli.produce import CUT_SHORT
from processor.cli.store_path import StorePath
from replay.archive import Archive
from replay.archive_batch import DELETED, Gap
from replay.archive_reader import ArchiveReader
from replay.segment_archive import SegmentArchive

ARCHIVE_NAME = "archive.duckdb"


@click.group(invoke_without_command=True)
@bootstrap_option
@click.option("--db", type=click.Path(dir_okay=False, path_type=Path), help="The archive.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"The same, as DIR/{ARCHIVE_NAME}.",
)
@click.option(
    "--parquet",
    "folder",
    type=StorePath(file_okay=False),
    help="Instead, Parquet segments in a folder or s3://BUCKET, read while they are written.",
)
@click.option("--until-end", is_flag=True, help="End where the topics ended when it began.")
@click.option(
    "--serve",
    "port",
    type=click.IntRange(0, 65_535),
    help="Serve the pages at this port meanwhile.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to serve them.")
@click.option(
    "--tokens",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Who may look at them; see serve --help.",
)
@key_file_option
@json_option
@click.pass_context
def archive(
    context: click.Context,
    bootstrap: str | None,
    db: Path | None,
    out: Path | None,
    folder: Path | None,
    until_end: bool,
    port: int | None,
    host: str,
    tokens: Path | None,
    as_json: bool,
) -> int:
    """Copy every topic into an archive, each message once, and follow them until Ctrl-C."""
    if context.invoked_subcommand is not None:
        if bootstrap or db or out or folder or until_end or port or tokens or as_json:
            raise BadInputError(f"options come after archive {context.invoked_subcommand}")
        return 0
    path = _path(db, out, folder)
    kind = Archive if folder is None else SegmentArchive
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    settings = kafka_settings(bootstrap)
    progress = Progress(shown=True, noun="messages")

    async def work(stop: AskedToStop) -> tuple[Copier, signal.Signals | None]:
        async with (
            ArchiveThread(path, _say_stopped, kind) as thread,
            sealing(settings, path, thread.vault) as sealer,
        ):
            copier = Copier(settings, thread, stop, _say_gap, progress.step, sealer)
            async with _pages(thread, copier, port, host, tokens, as_json=as_json):
                reached_end = await copier.copy(until_end=until_end)
        return copier, None if reached_end else stop.by

    try:
        copier, ended_by = run_async(work)
    finally:
        progress.close()
    if as_json:
        gaps = [gap._asdict() for gap in copier.gaps]
        write_json({"db": str(path), "copied": copier.copied, "gaps": gaps})
    else:
        click.echo(f"{copier.copied:,} messages copied")
    if until_end and ended_by is not None:
        complain(f"stopped by {ended_by.name} before the end; what was copied is kept in {path}")
        return CUT_SHORT + ended_by
    return 0


@archive.command()
@bootstrap_option
@click.option("--db", type=StorePath(), required=True, help="The archive, a file or a folder.")
@key_file_option
@json_option
def restore(bootstrap: str | None, db: Path, as_json: bool) -> int:
    """Send an archive's log, dead letters and utterances to topics that were just created.

    They may have another partition count. Start no worker before it is done.
    """
    settings = kafka_settings(bootstrap)
    progress = Progress(shown=True, noun="messages")

    async def work(stop: AskedToStop) -> tuple[Restorer, signal.Signals | None]:
        with ArchiveReader(db) as reader:
            restorer = Restorer(settings, reader, stop, progress.step)
            await restorer.restore()
        return restorer, stop.by

    try:
        restorer, ended_by = run_async(work)
    finally:
        progress.close()
    if as_json:
        write_json({"db": str(db), "sent": restorer.sent})
    else:
        for topic, count in restorer.sent.items():
            click.echo(f"{count:,} messages sent to {topic}")
    if ended_by is not None:
        complain(f"stopped by {ended_by.name}; delete the topics before another try")
        return CUT_SHORT + ended_by
    return 0


@asynccontextmanager
async def _pages(
    thread: ArchiveThread,
    copier: Copier,
    port: int | None,
    host: str,
    tokens: Path | None,
    *,
    as_json: bool,
) -> AsyncIterator[None]:
    if port is None:
        yield
        return
    # The server takes a fifth of the time in which this command starts.
    from processor.app.archive_gauges import archive_metrics
    from processor.app.pages.server import Place
    from processor.cli.serve import serving_beside

    metrics = archive_metrics(copier, thread.path)
    async with serving_beside(thread, Place(host, port, tokens), metrics, as_json=as_json):
        yield


def _path(db: Path | None, out: Path | None, folder: Path | None) -> Path:
    if sum(each is not None for each in (db, out, folder)) != 1:
        raise BadInputError("give either --db FILE, --out DIR or --parquet FOLDER")
    if db is not None:
        return db
    if folder is not None:
        return folder
    assert out is not None
    out.mkdir(parents=True, exist_ok=True)
    return out / ARCHIVE_NAME


def _say_gap(gap: Gap) -> None:
    if gap.reason == DELETED:
        complain(
            f"{gap.topic}/{gap.partition}: the brokers deleted what was at offsets "
            f"{gap.first_offset} to {gap.next_offset - 1} before it was copied"
        )


def _say_stopped(where: str) -> None:
    complain(f"{where}; it is copied, but not folded from there on")
