"""`standfast evaluate NAME`: the experiments as commands, one module each."""

from __future__ import annotations

import click

from processor.cli.lazy import LazyGroup

BENCHMARKS = {
    "operations": "evaluate_operations",
}
"""Each benchmark and the module with its command, which is called as the benchmark is."""


@click.group(cls=LazyGroup, modules=BENCHMARKS)
def evaluate() -> None:
    """Measure how well something is done, on conversations whose outcome is known."""
