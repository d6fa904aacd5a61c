"""`standfast usage`: what models were asked, and what that cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from processor.cli.key_file import key_file_option
from processor.cli.output import json_option, printable, write_json
from processor.cli.prices import Prices, in_words, price_option, total
from processor.cli.store_path import StorePath
from replay.interpretations import Usage, usage_in
from schemas.ids import conversation_key


@click.command()
@click.option("--db", type=StorePath(), required=True, help="A store or an archive.")
@click.option("--tenant", "tenant_id", help="Of this tenant only.")
@price_option
@key_file_option
@json_option
def usage(db: Path, tenant_id: str | None, prices: Prices, as_json: bool) -> int:
    """Sum up the calls, tokens, time and cost of models per tenant, conversation and model.

    A store of a run, of a worker, and an archive all have it.
    """
    rows = usage_in(db, tenant_id)
    tenants = _sums(rows, prices, "tenant_id")
    models = _sums(rows, prices, "interpreter", "model")
    if as_json:
        write_json(
            {
                "conversations": [
                    {**row._asdict(), "cost": total([row], prices)["cost"]} for row in rows
                ],
                "tenants": [{**named, **sums} for named, sums in tenants],
                "models": [{**named, **sums} for named, sums in models],
                "total": total(rows, prices),
            }
        )
        return 0
    for row in rows:
        place = conversation_key(row.tenant_id, row.conversation_id)
        name = f"{row.interpreter} {row.model}".strip()
        click.echo(printable(f"{place}  {name}: {in_words(total([row], prices))}"))
    for named, sums in [*tenants, *models]:
        click.echo(printable(f"{' '.join(filter(None, named.values()))}: {in_words(sums)}"))
    if not rows:
        click.echo("no model was asked")
    return 0


def _sums(
    rows: Sequence[Usage], prices: Prices, *fields: str
) -> list[tuple[dict[str, str], dict[str, Any]]]:
    """The totals of the rows that have the same in these fields, with what they have there."""

    def key(row: Usage) -> tuple[str, ...]:
        return tuple(getattr(row, field) for field in fields)

    groups = groupby(sorted(rows, key=key), key)
    return [(dict(zip(fields, named, strict=True)), total(same, prices)) for named, same in groups]
