"""`standfast replay`: what can be told of a conversation afterwards."""

from __future__ import annotations

import click

from processor.cli.report import report


@click.group()
def replay() -> None:
    """Look at what a store or an archive has kept."""


replay.add_command(report)
