"""`standfast replay compare`: graph traversal against replaying the flat history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from processor.app.growing import growing
from processor.cli.errors import BadInputError
from processor.cli.output import complain, json_option, write_json
from replay.compare import SIZES, Measured, plot, table
from replay.compare import compare as measure

TURNS_MAX = 1_000_000
"""More than a conversation that fits into memory."""


@click.command()
@click.option(
    "--sizes",
    default=",".join(map(str, SIZES)),
    show_default=True,
    help="Turns, separated by commas.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to put a plot as SVG and PNG; needs the extra `evaluate`.",
)
@json_option
def compare(sizes: str, out: Path | None, as_json: bool) -> int:
    """Ask what rests on a record, and whether it is grounded, in a conversation that grows.

    The answers by graph traversal must be those of a replay; status 1 if any is not.
    """
    found: list[Measured] = []
    lines = table(_remembered(_sizes(sizes), found))
    for line in lines:
        if not as_json:
            click.echo(line)
    paths = [] if out is None else [str(path) for path in plot(found, out)]
    if as_json:
        sized = [{**each._asdict(), "ratio": each.ratio} for each in found]
        write_json({"sizes": sized, "plots": paths})
    wrong = sum(each.disagreements for each in found)
    if wrong:
        complain(f"{wrong} questions have two answers")
    elif not as_json:
        click.echo("every answer was the same both ways")
    return int(wrong > 0)


def _remembered(sizes: list[int], found: list[Measured]) -> Iterator[Measured]:
    for each in measure(growing(sizes)):
        found.append(each)
        yield each


def _sizes(written: str) -> list[int]:
    try:
        sizes = sorted({int(size) for size in written.split(",")})
    except ValueError as error:
        raise BadInputError("--sizes: numbers separated by commas") from error
    if sizes[0] < 1:
        raise BadInputError("--sizes: a conversation has at least one turn")
    if sizes[-1] > TURNS_MAX:
        raise BadInputError(f"--sizes: at most {TURNS_MAX:,} turns, all in memory")
    return sizes
