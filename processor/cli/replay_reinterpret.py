"""`standfast replay reinterpret`: the same utterances, read by another interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click

from processor.app.reinterpret import archived_utterances
from processor.app.reinterpret import reinterpret as read_again
from processor.cli.errors import BadInputError
from processor.cli.output import printable, write_json
from replay.opened import opened
from replay.reinterpret import Comparison, compare_histories, history_of
from replay.store import Store

STORE_NAME = "standfast.duckdb"


@click.command()
@click.option("--db", type=click.Path(path_type=Path), required=True, help="The first history.")
@click.option(
    "--input",
    "input_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The utterances, one a line; by default those that the archive holds.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help=f"Where the new history goes, as DIR/{STORE_NAME}; it must be new.",
)
@click.option("--interpreter", type=click.Choice(["native"]), default="native", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def reinterpret(
    db: Path, input_path: Path | None, out: Path, interpreter: str, as_json: bool
) -> int:
    """Read the same utterances into a new history, and compare it with the first, which stays."""
    path = out / STORE_NAME
    if path.exists():
        raise BadInputError(f"{path}: is there already; a history is not written over another")
    lines = archived_utterances(db) if input_path is None else _lines(input_path)
    out.mkdir(parents=True, exist_ok=True)
    with Store(path) as store:
        read_again(lines, store, None)
    compared = dict(_compared(db, path))
    if as_json:
        told = [
            {"tenant_id": tenant_id, "conversation_id": conversation_id, **found.view()}
            for (tenant_id, conversation_id), found in compared.items()
        ]
        write_json({"left": str(db), "right": str(path), "conversations": told})
        return 0
    for key, found in compared.items():
        _tell("/".join(key), found)
    return 0


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _compared(left: Path, right: Path) -> Iterator[tuple[tuple[str, str], Comparison]]:
    """The comparison of each conversation that the new history has."""
    with closing(opened(left)) as ours, closing(opened(right)) as theirs:
        keys = theirs.execute("SELECT DISTINCT tenant_id, conversation_id FROM log ORDER BY ALL")
        for key in keys.fetchall():
            yield (
                key,
                compare_histories(history_of(ours, left, *key), history_of(theirs, right, *key)),
            )


def _tell(name: str, found: Comparison) -> None:
    labels = f"{len(found.turns):,} turns, F1 {found.f1:.3f}, exact {found.exact_match:.3f}"
    maps = f"records {found.record_jaccard:.3f}, claims {found.claim_jaccard:.3f}"
    click.echo(printable(f"{name}: {labels}, {maps}"))
    for turn in found.turns:
        if not turn.same_kinds:
            click.echo(
                printable(f"  {turn.utterance_id}: {_kinds(turn.left)} | {_kinds(turn.right)}")
            )
    for verdict in found.verdicts:
        place = verdict.record or f"claim {verdict.claim_index}"
        outcomes = f"{verdict.left or 'no verdict'} -> {verdict.right or 'no verdict'}"
        click.echo(printable(f"  verdict {verdict.utterance_id}, {place}: {outcomes}"))
    for side, cost in (("left", found.cost_left), ("right", found.cost_right)):
        click.echo(f"  {side}: {cost.tokens_in:,} tokens in, {cost.tokens_out:,} out")


def _kinds(kinds: tuple[str, ...] | None) -> str:
    return "not read" if kinds is None else ", ".join(kinds) or "nothing"
