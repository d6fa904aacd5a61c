"""`standfast usage`: what models were asked, and what that cost."""

from __future__ import annotations

from pathlib import Path

import click

from processor.cli.key_file import key_file_option
from processor.cli.output import json_option, printable, write_json
from processor.cli.prices import Prices, in_words, price_option, total
from processor.cli.store_path import StorePath
from replay.interpretations import usage_in
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
    tenants = sorted({row.tenant_id for row in rows})
    sums = {name: total((row for row in rows if row.tenant_id == name), prices) for name in tenants}
    if as_json:
        write_json(
            {
                "conversations": [
                    {**row._asdict(), "cost": total([row], prices)["cost"]} for row in rows
                ],
                "tenants": [{"tenant_id": name, **each} for name, each in sums.items()],
                "total": total(rows, prices),
            }
        )
        return 0
    for row in rows:
        place = conversation_key(row.tenant_id, row.conversation_id)
        name = f"{row.interpreter} {row.model}".strip()
        click.echo(printable(f"{place}  {name}: {in_words(total([row], prices))}"))
    for name, each in sums.items():
        click.echo(f"{name}: {in_words(each)}")
    if not rows:
        click.echo("no model was asked")
    return 0
