"""`standfast keys create|rewrap`: the keys of tenants, and data keys under new ones."""

from __future__ import annotations

import re
from pathlib import Path

import click

from processor.app.key_rotation import rewrap_in_folder, rewrap_on_brokers
from processor.app.settings import kafka_settings
from processor.cli.errors import BadInputError
from processor.cli.kafka import AskedToStop, bootstrap_option, run_async
from processor.cli.key_file import key_file_option
from processor.cli.output import json_option, write_json
from processor.cli.store_path import StorePath
from processor.vault.tenant_keys import ANY_TENANT, add_tenant_key
from replay.sealing import KEY_FILE, keys_of, tenant_keys, vault_for
from schemas.ids import TENANT_PATTERN
from schemas.keys import TENANT_KEY_PATTERN


@click.group()
def keys() -> None:
    """Make keys of tenants, and wrap data keys with new ones."""


@keys.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--tenant", default=ANY_TENANT, show_default=True, help="Whose key; * is for all.")
@click.option("--id", "key_id", required=True, help="The name of the key, such as a date.")
def create(file: Path, tenant: str, key_id: str) -> int:
    """Add a new key to FILE, which only its owner may read; it is made if it is not there.

    New data keys are wrapped with the last key of their tenant; older ones still unwrap.
    """
    if tenant != ANY_TENANT and not re.fullmatch(TENANT_PATTERN, tenant):
        raise BadInputError(f"--tenant: {tenant!r} is no tenant id")
    if not re.fullmatch(TENANT_KEY_PATTERN, key_id):
        raise BadInputError(f"--id: {key_id!r} is no name of a key")
    add_tenant_key(file, tenant, key_id)
    click.echo(f"key {key_id} for {tenant} added to {file}")
    return 0


@keys.command()
@bootstrap_option
@click.option("--db", type=StorePath(), help="The store whose data keys are meant.")
@key_file_option
@json_option
def rewrap(bootstrap: str | None, db: Path | None, as_json: bool) -> int:
    """Wrap every data key with the newest key of its tenant; then older keys can be taken away.

    Nothing that was sealed changes.
    """
    vault = vault_for(db or Path("keys"))
    if vault is None:
        raise BadInputError(f"give --key-file, or set {KEY_FILE}")
    tenant_keys().check()
    if db is not None:
        folder = keys_of(db)
        if not db.exists():
            raise BadInputError(f"{db}: no such file")
        if not folder.folder.is_dir():
            raise BadInputError(f"{folder.folder}: no such folder; no data keys of {db} are there")
        count = rewrap_in_folder(folder, vault)
    else:
        settings = kafka_settings(bootstrap)

        async def work(stop: AskedToStop) -> int:
            del stop
            return await rewrap_on_brokers(settings, vault)

        count = run_async(work)
    if as_json:
        write_json({"rewrapped": count})
    else:
        click.echo(f"{count:,} data keys wrapped anew")
    return 0
