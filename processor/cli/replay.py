"""`standfast replay`: questions about the past, and whether it is still what it was."""

from __future__ import annotations

from importlib import import_module

import click

_COMMANDS = {
    "audit": "replay_audit",
    "anchor": "replay_anchor",
    "index": "replay_index",
    "export": "replay_export",
    "what-if": "replay_what_if",
    "diff": "replay_diff",
    "compare": "replay_compare",
    "reinterpret": "replay_reinterpret",
}
"""Each command and its module, which is imported when it is asked for."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"processor.cli.{_COMMANDS[cmd_name]}")
        command = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Commands)
def replay() -> None:
    """Ask about the past: audit it, compare it, imagine it otherwise."""
