"""`standfast erase`: conversations are forgotten."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from processor.app.erasure import (
    Erased,
    broker_erasure,
    destroy_in_folder,
    due,
    erase_in_store,
    last_said_in,
    refuse_no_archive,
)
from processor.app.sender import Sender
from processor.app.settings import KafkaSettings, kafka_settings
from processor.app.tenants import Tenants, read_tenants
from processor.cli.errors import BadInputError
from processor.cli.kafka import AskedToStop, bootstrap_option, run_async
from processor.cli.key_file import key_file_option
from processor.cli.output import complain, json_option, write_json
from processor.cli.run import STORE_NAME
from processor.cli.store_path import StorePath
from replay.sealing import keys_of
from schemas.ids import NAME_PATTERN, TENANT_PATTERN, conversation_key

Named = tuple[str, str]
"""A tenant and a conversation."""


@click.command()
@click.option("--tenant", "tenant_id", default="default", show_default=True)
@click.option("--conversation", "conversation_id", help="The conversation to be erased.")
@click.option("--due", "is_due", is_flag=True, help="All that are older than --tenants keeps them.")
@click.option(
    "--tenants",
    "tenants_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What holds for tenants; keep_days says for how long conversations are kept.",
)
@bootstrap_option
@click.option(
    "--db",
    "stores",
    multiple=True,
    type=StorePath(),
    help="The store of a run; with --bootstrap, an archive of these brokers, a file or a folder.",
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help=f"The same, DIR/{STORE_NAME}."
)
@key_file_option
@json_option
def erase(
    tenant_id: str,
    conversation_id: str | None,
    is_due: bool,
    tenants_path: Path | None,
    bootstrap: str | None,
    stores: tuple[Path, ...],
    out: Path | None,
    as_json: bool,
) -> int:
    """Destroy the keys of a conversation, on the brokers or of a store, and close it for ever.

    What cannot be read any more cannot be had back. Asked again, an erasure that was cut short is
    completed. The status is 1 if a conversation was not known, or stands somewhere in the clear.
    """
    paths = [*stores, *([] if out is None else [out / STORE_NAME])]
    _refuse_bad(tenant_id, conversation_id, tenants_path, paths, is_due=is_due)
    named = None if conversation_id is None else (tenant_id, conversation_id)
    tenants = read_tenants(tenants_path)
    now = datetime.now(UTC)
    if bootstrap is None and paths:
        erased = [each for path in paths for each in _in_store(path, named, tenants, now)]
    else:
        settings = kafka_settings(bootstrap)
        for path in paths:
            refuse_no_archive(path)

        async def work(stop: AskedToStop) -> list[Erased]:
            del stop
            return await _on_brokers(settings, named, tenants, now, paths)

        erased = run_async(work)
    return _tell(erased, as_json=as_json)


def _refuse_bad(
    tenant_id: str,
    conversation_id: str | None,
    tenants_path: Path | None,
    paths: Sequence[Path],
    *,
    is_due: bool,
) -> None:
    if (conversation_id is None) == (not is_due):
        raise BadInputError("give either --conversation C or --due")
    if is_due and tenants_path is None:
        raise BadInputError("--due: give --tenants FILE, which says for how long they are kept")
    if not re.fullmatch(TENANT_PATTERN, tenant_id):
        raise BadInputError(f"--tenant: {tenant_id!r} is no tenant id")
    if conversation_id is not None and not re.fullmatch(NAME_PATTERN, conversation_id):
        raise BadInputError(f"--conversation: {conversation_id!r} is no id")
    for path in paths:
        if not path.exists():
            raise BadInputError(f"{path}: no such file or folder")


def _in_store(path: Path, named: Named | None, tenants: Tenants, now: datetime) -> list[Erased]:
    wanted = due(last_said_in(path), tenants, now) if named is None else [named]
    return [erase_in_store(path, *each, now) for each in wanted]


async def _on_brokers(
    settings: KafkaSettings,
    named: Named | None,
    tenants: Tenants,
    now: datetime,
    archives: Sequence[Path],
) -> list[Erased]:
    """Erase on the brokers, and the keys beside archives, which need not be running."""
    async with Sender(settings.client_options()) as sender:
        erasure = await broker_erasure(settings, sender)
        wanted = due(await erasure.last_said(), tenants, now) if named is None else [named]
        erased = []
        for each in wanted:
            for path in archives:
                destroy_in_folder(keys_of(path), *each)
            erased.append(await erasure.erase(*each, now))
        await erasure.let_compact()
    return erased


def _tell(erased: Sequence[Erased], *, as_json: bool) -> int:
    if as_json:
        write_json({"erased": [each._asdict() for each in erased]})
    for each in erased:
        name = conversation_key(each.tenant_id, each.conversation_id)
        if not as_json:
            click.echo(f"{name} is erased")
        if each.in_the_clear:
            complain(
                f"{name}: {each.in_the_clear:,} of its events stand in the log in the clear, from "
                "before there was a key file; they stay"
            )
        elif not each.was_known:
            complain(f"{name} was not known; its id is closed now")
    if not erased and not as_json:
        click.echo("nothing is due")
    return int(any(each.in_the_clear or not each.was_known for each in erased))
