"""`standfast replay index`: the interval rows, for questions in SQL about any turn."""

from __future__ import annotations

from pathlib import Path

import click

from processor.cli.errors import BadInputError
from processor.cli.output import Progress, json_option, write_json
from replay.index import index as bring_up_to_date
from replay.store import Store


@click.command()
@click.option("--db", type=click.Path(dir_okay=False, path_type=Path), required=True)
@json_option
def index(db: Path, as_json: bool) -> int:
    """Write down in which turns each version of a record, link, atom or problem holds.

    The rows are made from the logs that have grown since the last time; see replay/README.md.
    """
    if not db.exists():
        raise BadInputError(f"{db}: no such file")
    progress = Progress(shown=True, noun="turns")
    try:
        with Store(db) as store:
            count = bring_up_to_date(store, progress.step)
    finally:
        progress.close()
    if as_json:
        write_json({"db": str(db), "indexed": count})
    else:
        click.echo(f"{count:,} conversations indexed")
    return 0
