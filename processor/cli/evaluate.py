"""`standfast evaluate NAME`: the experiments as commands."""

from __future__ import annotations

import click

from processor.cli.evaluate_benchmark import COMMANDS
from processor.cli.evaluate_operations import operations


@click.group(commands=[operations, *COMMANDS])
def evaluate() -> None:
    """Measure how well something is done, on conversations whose outcome is known."""
