"""`standfast usage`: what models were asked, and what that cost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import click

from processor.cli.errors import BadInputError
from processor.cli.kafka import json_option
from processor.cli.output import printable, write_json
from replay.interpretations import Usage, usage_in

PRICES_SETTING = "STANDFAST_PRICES"
RECORDED = "recorded"
"""The interpreter whose answers were paid for when they were recorded."""
_MILLION = 1_000_000
_SUMMED = ("utterances", "calls", "tokens_in", "tokens_out", "milliseconds")

Price = tuple[Decimal, Decimal]


@click.command()
@click.option(
    "--db", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The store."
)
@click.option("--tenant", "tenant_id", help="Of this tenant only.")
@click.option(
    "--price",
    "written",
    metavar="MODEL=IN/OUT",
    multiple=True,
    help="What a million tokens of a model cost, read and written; may be given for several. "
    f"{PRICES_SETTING} has the same, with commas between them.",
)
@json_option
def usage(db: Path, tenant_id: str | None, written: tuple[str, ...], as_json: bool) -> int:
    """Sum up the calls, tokens, time and cost of models per tenant, conversation and model.

    A store of a run, of a worker, and an archive all have it.
    """
    told = os.environ.get(PRICES_SETTING, "")
    prices = dict(map(_price, [*filter(None, told.split(",")), *written]))
    rows = usage_in(db, tenant_id)
    tenants = sorted({row.tenant_id for row in rows})
    sums = {name: [row for row in rows if row.tenant_id == name] for name in tenants}
    if as_json:
        write_json(
            {
                "conversations": [
                    {**row._asdict(), "cost": _written(_cost(row, prices))} for row in rows
                ],
                "tenants": [
                    {"tenant_id": name, **_total(each, prices)} for name, each in sums.items()
                ],
                "total": _total(rows, prices),
            }
        )
        return 0
    for row in rows:
        place = f"{row.tenant_id}/{row.conversation_id}"
        name = f"{row.interpreter} {row.model}".strip()
        click.echo(printable(f"{place}  {name}: {_line(_total([row], prices))}"))
    for name, each in sums.items():
        click.echo(f"{name}: {_line(_total(each, prices))}")
    if not rows:
        click.echo("no model was asked")
    return 0


def _price(written: str) -> tuple[str, Price]:
    model, _, numbers = written.strip().rpartition("=")
    try:
        read, wrote = map(Decimal, numbers.split("/"))
    except (InvalidOperation, ValueError):
        model = ""
    if not model or not (read.is_finite() and wrote.is_finite()) or min(read, wrote) < 0:
        raise BadInputError(f"{written!r} is no price: it reads MODEL=IN/OUT, as gpt-5=1.25/10")
    return model, (read, wrote)


def _cost(row: Usage, prices: Mapping[str, Price]) -> Decimal | None:
    """What the calls cost; None if the model has no price."""
    if row.interpreter == RECORDED:
        return Decimal(0)
    price = prices.get(row.model)
    if price is None:
        return None
    return (row.tokens_in * price[0] + row.tokens_out * price[1]) / _MILLION


def _total(rows: Iterable[Usage], prices: Mapping[str, Price]) -> dict[str, Any]:
    """Sums over rows; the cost is null if that of any row is not known."""
    kept = list(rows)
    costs = [_cost(row, prices) for row in kept]
    known = [cost for cost in costs if cost is not None]
    whole = sum(known, Decimal(0)) if len(known) == len(costs) else None
    sums = {name: sum(getattr(row, name) for row in kept) for name in _SUMMED}
    return {**sums, "cost": _written(whole)}


def _written(cost: Decimal | None) -> str | None:
    return None if cost is None else f"{cost.normalize():f}"


def _line(total: Mapping[str, Any]) -> str:
    cost = "" if total["cost"] is None else f", cost {total['cost']}"
    return (
        f"{total['calls']:,} calls for {total['utterances']:,} utterances, "
        f"{total['tokens_in']:,} tokens in, {total['tokens_out']:,} out, "
        f"{total['milliseconds'] / 1_000:,.1f} s{cost}"
    )
