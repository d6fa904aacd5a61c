"""`standfast replay anchor`: signed heads of the chains, to be kept elsewhere."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from processor.cli.errors import BadInputError
from processor.cli.key_file import key_file_option
from processor.cli.output import json_option, write_json
from processor.cli.store_path import StorePath
from replay.anchor import new_key, private_key, write_anchor
from replay.opened import opened

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--db", type=StorePath(), required=True, help="A store or archive.")
@click.option("--key", type=_FILE, required=True, help="An Ed25519 key in PEM.")
@click.option("--new-key", "makes_key", is_flag=True, help="Make the key, and KEY.pub beside it.")
@click.option("--out", type=_FILE, required=True, help="The anchor; it must not exist yet.")
@key_file_option
@json_option
def anchor(db: Path, key: Path, makes_key: bool, out: Path, as_json: bool) -> int:
    """Write down how far every log goes, signed, so that an audit can tell what was cut off.

    Keep the file, and the public key, where who writes the store cannot write.
    """
    with closing(opened(db)) as connection:
        if makes_key:
            new_key(key)
        elif not key.exists():
            raise BadInputError(f"{key}: no such file; --new-key makes it")
        heads = write_anchor(out, connection, private_key(key))
    if as_json:
        write_json({"anchor": str(out), "heads": heads})
    else:
        click.echo(f"{heads:,} logs anchored in {out}")
    return 0
