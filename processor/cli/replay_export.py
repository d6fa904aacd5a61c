"""`standfast replay export`: an archive as a folder of Parquet segments."""

from __future__ import annotations

from pathlib import Path

import click

from processor.cli.output import json_option, write_json
from processor.cli.store_path import StorePath
from replay.parquet import export as export_segments


@click.command()
@click.option("--db", type=click.Path(dir_okay=False, path_type=Path), required=True)
@click.option("--parquet", "folder", type=StorePath(file_okay=False), required=True)
@json_option
def export(db: Path, folder: Path, as_json: bool) -> int:
    """Copy a store or an archive into a folder that many processes may read at once.

    Called again, it adds what has come since, in segments of its own.
    """
    rows = export_segments(db, folder)
    if as_json:
        write_json({"db": str(db), "parquet": str(folder), "rows": rows})
    else:
        click.echo(f"{rows:,} rows added to {folder}")
    return 0
