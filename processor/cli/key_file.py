"""`--key-file`: where the keys of tenants are, for every command that reads or writes a history."""

from __future__ import annotations

import os
from pathlib import Path

import click

from replay.sealing import KEY_FILE, WRAPPED_KEYS


def _remember(context: click.Context, parameter: click.Parameter, given: Path | None) -> None:
    """Everything that opens a store looks there, also in processes that are started for it."""
    del context, parameter
    if given is not None:
        os.environ[KEY_FILE] = str(given.absolute())


key_file_option = click.option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar=KEY_FILE,
    expose_value=False,
    callback=_remember,
    help="The keys of tenants, where what was said is kept sealed. The wrapped data keys lie "
    f"beside the store, in FILE.keys, or where {WRAPPED_KEYS} says.",
)
