"""`standfast topics create|check`: the topics on the brokers."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

from processor.app import topics as on_brokers
from processor.app.setting_kinds import WINDOW_DAYS_MAX
from processor.app.settings import kafka_settings
from processor.app.topics import PARTITIONS, REPLICATION, Layout, Mismatch
from processor.cli.errors import BadInputError
from processor.cli.kafka import AskedToStop, bootstrap_option, run_async
from processor.cli.output import json_option, printable, write_json
from schemas.ids import TENANT_PATTERN

_replication = click.option(
    "--replication",
    type=click.IntRange(1, 100),
    default=REPLICATION,
    show_default=True,
    help="Replicas of each partition; 1 for a broker to try things out.",
)
_tenants = click.option(
    "--tenant",
    "tenants",
    metavar="T",
    multiple=True,
    help="Also the topic of this tenant's own alerts; may be given several times.",
)


_erasure_window = click.option(
    "--erasure-window",
    "window_days",
    metavar="DAYS",
    type=click.IntRange(1, WINDOW_DAYS_MAX),
    envvar="STANDFAST_WORKER_ERASURE_WINDOW_DAYS",
    help="Within so many days topics must lose what is in the clear; for deployments that seal.",
)


@click.group()
def topics() -> None:
    """Create the topics of the pipeline, or check that they are as they should be."""


@topics.command()
@bootstrap_option
@click.option(
    "--partitions",
    type=click.IntRange(1, 10_000),
    help=f"Partitions of each topic; without it as many as there are, or {PARTITIONS}. "
    "Take four times the most workers there will ever be: the number cannot change later.",
)
@_replication
@_tenants
@_erasure_window
@json_option
def create(
    bootstrap: str | None,
    partitions: int | None,
    replication: int,
    tenants: tuple[str, ...],
    window_days: int | None,
    as_json: bool,
) -> int:
    """Create the topics that are missing; what exists is checked and never changed."""
    settings = kafka_settings(bootstrap)
    layout = Layout(partitions, replication, _tenant_ids(tenants), window_days)

    async def work(stop: AskedToStop) -> on_brokers.Created:
        del stop
        return await on_brokers.create(settings, layout)

    done = run_async(work)
    if as_json:
        write_json({"created": list(done.created), "mismatches": _as_json(done.mismatches)})
    else:
        for name in done.created:
            click.echo(f"created {name}")
        _show(done.mismatches)
    return 1 if done.mismatches else 0


@topics.command()
@bootstrap_option
@click.option(
    "--partitions",
    type=click.IntRange(1, 10_000),
    help="How many partitions each topic should have; without it, all the same number.",
)
@_replication
@_tenants
@_erasure_window
@json_option
def check(
    bootstrap: str | None,
    partitions: int | None,
    replication: int,
    tenants: tuple[str, ...],
    window_days: int | None,
    as_json: bool,
) -> int:
    """Report every setting that is not as it should be, one per line; then the status is 1."""
    settings = kafka_settings(bootstrap)
    layout = Layout(partitions, replication, _tenant_ids(tenants), window_days)

    async def work(stop: AskedToStop) -> tuple[Mismatch, ...]:
        del stop
        return await on_brokers.check(settings, layout)

    mismatches = run_async(work)
    if as_json:
        write_json({"mismatches": _as_json(mismatches)})
    else:
        _show(mismatches)
    return 1 if mismatches else 0


def _tenant_ids(tenants: tuple[str, ...]) -> tuple[str, ...]:
    for tenant in tenants:
        if not re.fullmatch(TENANT_PATTERN, tenant):
            raise BadInputError(f"--tenant: {tenant!r} is no tenant id")
    return tuple(dict.fromkeys(tenants))


def _as_json(mismatches: Iterable[Mismatch]) -> list[dict[str, str]]:
    return [mismatch._asdict() for mismatch in mismatches]


def _show(mismatches: Iterable[Mismatch]) -> None:
    for mismatch in mismatches:
        click.echo(printable(str(mismatch)))
