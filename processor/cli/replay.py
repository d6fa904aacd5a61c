"""`standfast replay`: questions about the past, and whether it is still what it was."""

from __future__ import annotations

import click

from processor.cli.lazy import LazyGroup

COMMANDS = {
    "audit": "replay_audit",
    "anchor": "replay_anchor",
    "index": "replay_index",
    "export": "replay_export",
    "what-if": "replay_what_if",
    "diff": "replay_diff",
    "compare": "replay_compare",
    "reinterpret": "replay_reinterpret",
    "report": "report",
}
"""Each command and its module, which is imported when it is asked for."""


@click.group(cls=LazyGroup, modules=COMMANDS)
def replay() -> None:
    """Ask about the past: audit it, compare it, look at it, imagine it otherwise."""
