"""Compares derived events with those that folding gives again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, final

import orjson

from replay.audit.rows import DerivedRow
from replay.divergence import Divergence, Where, changed, changed_json
from schemas.derived import DerivedEvent
from schemas.wire import canonical_bytes


@final
class Stray(NamedTuple):
    """A derived row that is not where it should be: its place, and the hash of its data."""

    where: Where
    data_hash: str


class Found(Protocol):
    """Where differences go."""

    divergences: list[Divergence]
    missing: list[Stray]
    strays: list[Stray]


def compare_derived(
    where: Where, expected: Sequence[DerivedEvent], rows: Sequence[DerivedRow], found: Found
) -> None:
    """Compare what came of the event at `where` with the rows that stand there."""
    told = [(event, canonical_bytes(event).decode()) for event in expected]
    if len(told) == len(rows) and all(
        (row.place, row.turn, row.type, row.event_id, row.data)
        == (place, event.turn, event.TYPE, event.event_id, data)
        for place, ((event, data), row) in enumerate(zip(told, rows, strict=True))
    ):
        return
    left = list(rows)
    unmatched: list[int] = []
    for place, (event, data) in enumerate(told):
        row = _same(event, data, place, left)
        if row is None:
            unmatched.append(place)
        else:
            left.remove(row)
            _compare(where, place, event, data, row, found)
    for place in unmatched:
        event, data = told[place]
        row = next((each for each in left if each.place == place), None)
        if row is not None and not own_place_differs(row):
            left.remove(row)
            _compare(where, place, event, data, row, found)
        else:
            found.missing.append(Stray(_at(where, place, event.turn), _hash(data)))
    found.strays += map(stray, left)


def _same(
    event: DerivedEvent, data: str, place: int, rows: Iterable[DerivedRow]
) -> DerivedRow | None:
    """The row of an event: the one with its id or its data, at its place if there are two."""
    fitting = [row for row in rows if event.event_id == row.event_id or data == row.data]
    return min(fitting, key=lambda row: (row.place != place, row.data != data), default=None)


def _compare(
    where: Where, place: int, event: DerivedEvent, data: str, row: DerivedRow, found: Found
) -> None:
    where = _at(where, place, event.turn)
    for name, expected, actual in (
        ("place", place, row.place),
        ("turn", event.turn, row.turn),
        ("type", event.TYPE, row.type),
        ("event_id", event.event_id, row.event_id),
    ):
        if expected != actual:
            found.divergences.append(changed(where, name, expected, actual))
    if data != row.data:
        found.divergences.append(changed_json(where, "data", data.encode(), row.data))


def _at(where: Where, place: int, turn: int) -> Where:
    return where._replace(table="derived", place=place, turn=turn)


def stray(row: DerivedRow) -> Stray:
    """A row that nothing explains where it stands."""
    return Stray(Where("derived", *row[:3], turn=row.turn, place=row.place), _hash(row.data))


def own_place_differs(row: DerivedRow) -> bool:
    """Whether the data of a row belong to another event."""
    try:
        told = orjson.loads(row.data)
        own = (told["tenant_id"], told["conversation_id"], told["sequence"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return False
    return own != row[:3]


def settle(missing: Sequence[Stray], strays: Sequence[Stray]) -> list[Divergence]:
    """What became of rows that were not found where they should be, all conversations together."""
    by_hash: dict[str, list[Stray]] = {}
    for each in strays:
        by_hash.setdefault(each.data_hash, []).append(each)
    divergences: list[Divergence] = []
    for lost in missing:
        same = by_hash.get(lost.data_hash)
        if not same:
            divergences.append(Divergence(lost.where, None, "is missing"))
            continue
        found = same.pop()
        for name in ("tenant_id", "conversation_id", "sequence", "place"):
            expected, actual = getattr(lost.where, name), getattr(found.where, name)
            if expected != actual:
                divergences.append(changed(lost.where, name, expected, actual))
    for rest in by_hash.values():
        divergences += [
            Divergence(each.where, None, "does not come from the log, or stands twice")
            for each in rest
        ]
    return divergences


def _hash(data: str) -> str:
    return hashlib.sha256(data.encode()).hexdigest()


def digest_told(rows: Sequence[DerivedRow]) -> str | None:
    """The digest that the derived events say the log had."""
    for row in rows:
        try:
            told = orjson.loads(row.data)
        except orjson.JSONDecodeError:
            continue
        if isinstance(told, dict) and isinstance(told.get("digest"), str):
            return str(told["digest"])
    return None
