"""`standfast replay report`: a conversation as a page in one file that asks for nothing else."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import click
import duckdb

from processor.cli.errors import BadInputError
from processor.cli.key_file import key_file_option
from processor.cli.output import json_option, printable, write_json
from processor.cli.store_path import StorePath
from replay.errors import StoreError
from replay.report.data import report_bytes
from replay.report.page import report_page
from replay.report.story import Story
from replay.store import Store
from replay.store_file import first_line


@click.command()
@click.option("--db", type=StorePath(), required=True, help="A store or an archive.")
@click.option("--conversation", "conversation_id", required=True)
@click.option("--tenant", "tenant_id", default="default", show_default=True)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The page, as FILE.html.",
)
@key_file_option
@json_option
def report(db: Path, conversation_id: str, tenant_id: str, out: Path, as_json: bool) -> int:
    """Write a page that shows a conversation at every turn, what rests on what, and what fell."""
    story = Story(tenant_id, conversation_id)
    try:
        with Store(db, read_only=True) as store:
            found = story.catch_up(store.reader(tenant_id, conversation_id))
    except duckdb.Error as error:
        raise StoreError(f"{db}: cannot read: {first_line(error)}") from error
    if not found:
        raise BadInputError(f"{db}: tenant {tenant_id!r} has no conversation {conversation_id!r}")
    value = story.value()
    page = report_page(report_bytes(value), conversation_id)
    _write_whole(out, page.html)
    if as_json:
        counts = {"turns": value["turns"], "records": len(value["records"])}
        write_json({"out": str(out), "bytes": len(page.html), **counts})
    else:
        click.echo(printable(f"{out}: {value['turns']:,} turns, {len(value['records']):,} records"))
    return 0


def _write_whole(path: Path, content: bytes) -> None:
    """The whole file or none: a page that is cut off looks like one. Raises BadInputError.

    What a link leads to is replaced, not the link; a pipe or a device is written to.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        target = path.resolve()
        handle, name = tempfile.mkstemp(prefix=".standfast-", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(name, 0o666 & ~umask)
            os.replace(name, target)
        except OSError:
            with suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise BadInputError(f"{path}: cannot write: {error.strerror}") from error
