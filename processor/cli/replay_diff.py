"""`standfast replay diff`: two turns, conversations, stores, or versions of the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from processor.cli.errors import BadInputError
from processor.cli.key_file import key_file_option
from processor.cli.output import json_option, printable, write_json
from processor.cli.store_path import StorePath
from processor.engine.conversation import Conversation
from processor.engine.rules_version import KNOWN_RULES
from replay.bucket_path import store_path
from replay.diff import MapDiff, diff_events, diff_maps, fold_under
from replay.diff_stores import diff_stores
from replay.divergence import shown
from replay.reading import ConversationReader
from replay.store import Store
from schemas.ids import conversation_key
from schemas.wire import decode_log_event

_STORE = StorePath()


@click.command()
@click.argument("left", required=False)
@click.argument("right", required=False)
@click.option("--db", type=_STORE, help="The store; LEFT and RIGHT are conversations of it.")
@click.option("--conversation", "conversation_id", help="The conversation, for turns and rules.")
@click.option("--tenant", "tenant_id", default="default", show_default=True)
@click.option("--turn", "turns", type=click.IntRange(min=0), multiple=True, help="Give two.")
@click.option("--rules", "rules", type=int, multiple=True, help="Rules versions; give two.")
@click.option("--fail-different", is_flag=True, help="Exit with status 1 if anything differs.")
@key_file_option
@json_option
def diff(
    left: str | None,
    right: str | None,
    db: Path | None,
    conversation_id: str | None,
    tenant_id: str,
    turns: tuple[int, ...],
    rules: tuple[int, ...],
    fail_different: bool,
    as_json: bool,
) -> int:
    """Show what differs between two pasts.

    \b
    diff --db FILE --conversation C --turn 3 --turn 9    two turns
    diff --db FILE C D                                   two conversations ([TENANT/]NAME)
    diff --db FILE --conversation C --rules 1 --rules 2  two versions of the rules
    diff FILE FILE                                       the logs of two stores
    """  # noqa: D301 - the mark keeps the lines apart in the help
    if db is None:
        differs = _stores(left, right, as_json)
    elif left is not None and right is not None:
        with Store(db, read_only=True) as store:
            pair = [_at(store, *_named(name, tenant_id), None) for name in (left, right)]
        differs = _maps(pair, [left, right], as_json)
    elif conversation_id is None or len(turns) + len(rules) != 2 or len(turns) == 1:
        raise BadInputError(
            "give two conversations, or --conversation and two of --turn or --rules"
        )
    elif turns:
        with Store(db, read_only=True) as store:
            pair = [_at(store, tenant_id, conversation_id, turn) for turn in turns]
        differs = _maps(pair, [f"turn {turn}" for turn in turns], as_json)
    else:
        differs = _rules(db, (tenant_id, conversation_id), rules, as_json)
    return int(differs and fail_different)


def _named(name: str, tenant_id: str) -> tuple[str, str]:
    tenant, slash, conversation = name.partition("/")
    return (tenant, conversation) if slash else (tenant_id, name)


def _at(store: Store, tenant_id: str, conversation_id: str, turn: int | None) -> Conversation:
    conversation = store.conversation_at(tenant_id, conversation_id, turn)
    if conversation is None:
        at = "" if turn is None else f" that reached turn {turn}"
        where = f"tenant {tenant_id!r} has no conversation {conversation_id!r}{at}"
        raise BadInputError(f"{store.path}: {where}")
    return conversation


def _maps(pair: list[Conversation], names: list[str], as_json: bool) -> bool:
    found = diff_maps(*pair)
    if as_json:
        write_json({"left": names[0], "right": names[1], **found._asdict()})
    else:
        _tell(found, names)
    return not found.is_empty


def _tell(found: MapDiff, names: list[str]) -> None:
    for name, only in zip(names, (found.only_left, found.only_right), strict=True):
        for part, things in only.items():
            click.echo(printable(f"only in {name}: {part}: {', '.join(map(_thing, things))}"))
    for part, changed in found.changed.items():
        for name, fields in changed.items():
            for field, (one, other) in fields.items():
                what = f"{part} {name}: {field}: {shown(one)} -> {shown(other)}"
                click.echo(printable(what))
    if found.is_empty:
        click.echo("no difference")


def _thing(thing: Any) -> str:
    return " -> ".join(thing) if isinstance(thing, list) else str(thing)


def _rules(db: Path, ids: tuple[str, str], rules: tuple[int, ...], as_json: bool) -> bool:
    for version in rules:
        if version not in KNOWN_RULES:
            known = ", ".join(map(str, KNOWN_RULES))
            raise BadInputError(f"--rules: there is no version {version}; known: {known}")
    with Store(db, read_only=True) as store:
        reader = ConversationReader(store.beside(), db, *ids)
        events = [decode_log_event(stored.event) for stored in reader.events()]
        if not events:
            _at(store, *ids, None)
    (one, ours), (other, theirs) = (fold_under(events, version, ids) for version in rules)
    found = diff_maps(one, other)
    differing = list(diff_events(ours, theirs))
    if as_json:
        told = [event._asdict() for event in differing]
        write_json({"rules": rules, "events": told, **found._asdict()})
    else:
        for event in differing:
            where = f"event {event.sequence}, {event.type} {event.path}"
            click.echo(printable(f"{where}: {shown(event.left)} -> {shown(event.right)}"))
        _tell(found, [f"rules {version}" for version in rules])
    return bool(differing) or not found.is_empty


def _stores(left: str | None, right: str | None, as_json: bool) -> bool:
    if left is None or right is None:
        raise BadInputError("give two stores, or --db and what to compare in it")
    try:
        found = list(diff_stores(store_path(left), store_path(right)))
    except ValueError as wrong:
        raise BadInputError(str(wrong)) from wrong
    if as_json:
        write_json({"left": left, "right": right, "logs": [each._asdict() for each in found]})
        return bool(found)
    for each in found:
        lengths = f"{each.left_sequence:,} and {each.right_sequence:,} events"
        name = conversation_key(each.tenant_id, each.conversation_id)
        click.echo(f"{name}: {lengths}, the first that differs is {each.first_difference:,}")
    if not found:
        click.echo("no difference")
    return bool(found)
