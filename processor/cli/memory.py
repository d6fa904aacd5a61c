"""`standfast memory`: ask the evidence ledger of a stored conversation, show it, size it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
import orjson

from processor.app.tenants import read_tenants
from processor.cli.errors import BadInputError
from processor.cli.output import printable, write_json
from processor.cli.query import on_conversation
from processor.cli.reader_options import tenants_option
from processor.engine.conversation import Conversation
from processor.evidence.answers import Found
from processor.evidence.tiers import LearnedTiers, TellTier, tier_of
from processor.render.memory import (
    BUDGET_TOKENS,
    Asked,
    FacetNeededError,
    answer_line,
    memory_advice,
    memory_answer,
    memory_render,
    remembered,
)
from schemas.evidence import WEIGHT_MAX, MemoryClass, QueryClass, RenderFormat, is_valid_time


@click.group()
def memory() -> None:
    """Ask which value is in force, show the evidence, choose how much to keep."""


_memory_class = click.option(
    "--memory",
    "memory_class",
    type=click.Choice([each.value for each in MemoryClass]),
    help="The memory class that answers; without it the one that --tenants gives the tenant, else "
    "the ledger.",
)


@memory.command("ask")
@click.argument("entity")
@click.argument("attribute")
@click.option("--facet", help="The facet that is meant, such as a platform.")
@click.option(
    "--query",
    "query_class",
    type=click.Choice([each.value for each in QueryClass]),
    help="What is asked; snapshot by default, as_of with --at.",
)
@click.option("--at", help="As of this year, month, day or moment, by valid time.")
@_memory_class
@tenants_option
@on_conversation
def ask(
    conversation: Conversation,
    as_json: bool,
    entity: str,
    attribute: str,
    facet: str | None,
    query_class: str | None,
    at: str | None,
    memory_class: str | None,
    tenants_path: Path | None,
) -> int:
    """Say which value ENTITY has for ATTRIBUTE, what it replaced, or that it is in conflict.

    The status is 1 if there is no answer: nothing is known, it abstains, or it is not kept.
    """
    if at is not None and not is_valid_time(at):
        raise BadInputError(f"--at: {at!r} is no year, month, day, or moment with a zone")
    if at is not None and query_class not in (None, QueryClass.AS_OF):
        raise BadInputError("--at: goes with --query as_of alone")
    kind = QueryClass(query_class or (QueryClass.AS_OF if at else QueryClass.SNAPSHOT))
    asked = Asked(entity, attribute, facet, kind, at=at)
    by = _class_for(conversation, memory_class, tenants_path)
    try:
        answer = memory_answer(remembered(conversation, by, asked.key), asked)
    except FacetNeededError as needed:
        raise BadInputError(f"ATTRIBUTE: {needed}; give --facet") from needed
    if as_json:
        write_json(answer)
    else:
        click.echo(printable(answer_line(answer)))
    return int(answer["found"] is not Found.VALUE)


@memory.command("render")
@click.option(
    "--format",
    "how",
    type=click.Choice([each.value for each in RenderFormat]),
    default=RenderFormat.COMPACT.value,
    show_default=True,
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=BUDGET_TOKENS,
    show_default=True,
    help="At most so many tokens.",
)
@click.option("--superseded", is_flag=True, help="Include what is in force no longer.")
@_memory_class
@tenants_option
@on_conversation
def show(
    conversation: Conversation,
    as_json: bool,
    how: str,
    budget: int,
    superseded: bool,
    memory_class: str | None,
    tenants_path: Path | None,
) -> int:
    """Show the evidence in words, as a model should read it."""
    by = _class_for(conversation, memory_class, tenants_path)
    shown = memory_render(remembered(conversation, by), RenderFormat(how), budget, superseded)
    if as_json:
        write_json(shown)
        return 0
    for line in str(shown["text"]).splitlines():
        click.echo(("  " if line.startswith("  ") else "") + printable(line.strip()))
    return 0


@memory.command("advise")
@click.option("--mix", multiple=True, metavar="CLASS=WEIGHT", help="May be given several times.")
@click.option(
    "--queries",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Recorded queries: the lines that `memory ask --json` printed.",
)
@click.option(
    "--tiers",
    "learned",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Tell the conflict tiers by these coefficients, not by the rules: what "
    "`python -m replay.evaluate.tier_classifier` wrote.",
)
@on_conversation
def advise(
    conversation: Conversation,
    as_json: bool,
    mix: tuple[str, ...],
    queries: Path | None,
    learned: Path | None,
) -> int:
    """Say how much to keep: the least memory class that covers the queries, and what it costs."""
    weights: dict[QueryClass, float] = {}
    for query_class, weight in [*_given(mix), *_recorded(queries)]:
        weights[query_class] = weights.get(query_class, 0.0) + weight
    tell = tier_of if learned is None else _learned_tiers(learned)
    try:
        advice = memory_advice(conversation, weights, tell)
    except ValueError as nothing:
        raise BadInputError(f"{nothing}; give --mix CLASS=WEIGHT or --queries FILE") from nothing
    if as_json:
        write_json(advice)
        return 0
    click.echo(f"keep {advice['memory']}")
    for name, unit in (("bytes_per_key", "bytes per key"), ("tiers", "keys")):
        counts = advice[name]
        assert isinstance(counts, dict)
        for each, number in counts.items():
            click.echo(f"  {each}: {number:,} {unit}")
    return 0


def _class_for(
    conversation: Conversation, named: str | None, tenants_path: Path | None
) -> MemoryClass:
    """The class that was named, else the tenant's. Raises SettingsError."""
    if named is not None:
        return MemoryClass(named)
    return read_tenants(tenants_path).memory_class(conversation.tenant_id)


def _learned_tiers(path: Path) -> TellTier:
    try:
        return LearnedTiers.from_values(orjson.loads(path.read_bytes())).tier
    except ValueError as unreadable:
        raise BadInputError(f"--tiers: {path}: {unreadable}") from unreadable


def _given(mix: Iterable[str]) -> Iterable[tuple[QueryClass, float]]:
    for written in mix:
        name, _, weight = written.partition("=")
        try:
            query_class, often = QueryClass(name), float(weight)
        except ValueError as wrong:
            names = ", ".join(QueryClass)
            raise BadInputError(
                f"--mix: {written!r} is not CLASS=WEIGHT with a class of {names}"
            ) from wrong
        if not often <= WEIGHT_MAX:
            raise BadInputError(f"--mix: {written!r}: a weight is at most {WEIGHT_MAX:g}")
        yield query_class, often


def _recorded(queries: Path | None) -> Iterable[tuple[QueryClass, float]]:
    if queries is None:
        return
    for number, line in enumerate(queries.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield QueryClass(orjson.loads(line)["query"]), 1.0
        except (ValueError, KeyError, TypeError) as wrong:
            raise BadInputError(f"{queries}: line {number}: query: no query class") from wrong
