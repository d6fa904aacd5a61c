"""`standfast replay what-if`: what would fall if records were withdrawn."""

from __future__ import annotations

import click

from processor.cli.errors import BadInputError
from processor.cli.output import printable, write_json
from processor.cli.query import on_conversation
from processor.engine.conversation import Conversation
from replay.what_if import what_if as imagine
from replay.what_if import what_if_view


@click.command()
@click.option("--retract", "retracted", required=True, help="Record ids, separated by commas.")
@on_conversation
def what_if(conversation: Conversation, as_json: bool, retracted: str) -> int:
    """Imagine that records were withdrawn: what would lose its ground. Nothing is changed."""
    ids = [id_ for id_ in retracted.split(",") if id_]
    if not ids:
        raise BadInputError("--retract: names no record")
    if as_json:
        write_json(what_if_view(conversation, ids))
        return 0
    imagined = imagine(conversation.state, ids)
    click.echo(f"if {', '.join(imagined.retracted)} were withdrawn after turn {conversation.turn}:")
    for name in ("direct", "transitive", "in_good_standing", "newly_ungrounded"):
        click.echo(f"{name}: {_listed(getattr(imagined, name))}")
    if imagined.corroboration_lost:
        click.echo(f"of these, only corroboration lost: {_listed(imagined.corroboration_lost)}")
    click.echo(f"decisions: {_listed(imagined.decisions)}")
    for answer in imagined.answers:
        if answer.before != answer.after:
            text = f"{answer.record}: {answer.before} -> {answer.after}  {answer.claim}"
            click.echo(printable(text))
    return 0


def _listed(ids: tuple[str, ...]) -> str:
    return ", ".join(ids) or "(none)"
