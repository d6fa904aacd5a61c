"""What models cost: the option `--price`, and sums of what was asked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from processor.cli.errors import BadInputError
from replay.interpretations import Usage

PRICES_SETTING = "STANDFAST_PRICES"
RECORDED = "recorded"
"""The interpreter whose answers were paid for when they were recorded."""
_MILLION = 1_000_000
_SUMMED = ("utterances", "calls", "tokens_in", "tokens_out", "milliseconds")

Prices = Mapping[str, tuple[Decimal, Decimal]]
"""What a million tokens of a model cost, read and written."""

price_option = click.option(
    "--price",
    "prices",
    metavar="MODEL=IN/OUT",
    multiple=True,
    callback=lambda context, parameter, written: _prices(written),
    help="What a million tokens of a model cost, read and written; may be given for several. "
    f"{PRICES_SETTING} has the same, with commas between them.",
)


def _prices(written: Iterable[str]) -> Prices:
    """Those of the environment, and of the option. Raises BadInputError."""
    told = os.environ.get(PRICES_SETTING, "")
    return dict(map(_price, [*filter(None, told.split(",")), *written]))


def _price(written: str) -> tuple[str, tuple[Decimal, Decimal]]:
    model, _, numbers = written.strip().rpartition("=")
    try:
        read, wrote = map(Decimal, numbers.split("/"))
    except (InvalidOperation, ValueError):
        model = ""
    if not model or not (read.is_finite() and wrote.is_finite()) or min(read, wrote) < 0:
        raise BadInputError(f"{written!r} is no price: it reads MODEL=IN/OUT, as gpt-5=1.25/10")
    return model, (read, wrote)


def total(rows: Iterable[Usage], prices: Prices) -> dict[str, Any]:
    """Sums over rows; the cost is null if that of any row is not known."""
    kept = list(rows)
    costs = [_cost(row, prices) for row in kept]
    known = [cost for cost in costs if cost is not None]
    whole = sum(known, Decimal(0)) if len(known) == len(costs) else None
    sums = {name: sum(getattr(row, name) for row in kept) for name in _SUMMED}
    return {**sums, "cost": None if whole is None else f"{whole.normalize():f}"}


def _cost(row: Usage, prices: Prices) -> Decimal | None:
    """What the calls cost; None if the model has no price."""
    if row.interpreter == RECORDED:
        return Decimal(0)
    price = prices.get(row.model)
    if price is None:
        return None
    return (row.tokens_in * price[0] + row.tokens_out * price[1]) / _MILLION


def in_words(summed: Mapping[str, Any]) -> str:
    """A total as a line."""
    cost = "" if summed["cost"] is None else f", cost {summed['cost']}"
    return (
        f"{summed['calls']:,} calls for {summed['utterances']:,} utterances, "
        f"{summed['tokens_in']:,} tokens in, {summed['tokens_out']:,} out, "
        f"{summed['milliseconds'] / 1_000:,.1f} s{cost}"
    )
