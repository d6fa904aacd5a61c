"""DyKnow: values with a beginning and an end, in no order, as dated slots.

A JSON object of groups; in a group the entities, in an entity either the questions of its
attributes or, for athletes, one question about the team. A value reads `name |S: date |E: date`. A
date of zeros for month or day is of the precision that is left. A value without a beginning begins
with its end; a point in time (`P:`) beside the beginning is passed over.

`facets` takes a national team apart from a club: a player has both at once.

Source: Mousavi et al. 2024, DyKnow, sislab-unitn/DyKnow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

from replay.evaluate.adapters import AdapterError
from replay.evaluate.adapters.dated import Slot, Spell
from schemas.wire import WireError, decode_json

_DATED = re.compile(r"\|([SEP]):?\s*\+?(\d{4})-(\d{2})-(\d{2})T\S*")
_NATIONAL = re.compile(r"\b(national|olympic)\b", re.IGNORECASE)
TEAM = "team"


@final
class Read(NamedTuple):
    """The slots of a file, and how their dates were read."""

    slots: tuple[Slot, ...]
    values: int
    year_only: int
    without_beginning: int
    points: int


def read_slots(path: Path, facets: bool) -> Read:
    """The slots of a published file. Raises AdapterError, OSError."""
    try:
        stored: Any = decode_json(path.read_bytes())
    except WireError as invalid:
        raise AdapterError(f"{path}: {invalid}") from invalid
    found: list[Slot] = []
    counts = dict.fromkeys(("values", "year_only", "without_beginning", "points"), 0)
    for entity, attribute, answers in _questions(stored, path):
        spells = [_spell(answer, attribute, facets, counts, path) for answer in answers]
        id_ = f"dyknow-{len(found)}"
        found.append(Slot(id_, entity, attribute, tuple(spells)))
    return Read(tuple(found), **counts)


def _questions(stored: Any, path: Path) -> Iterator[tuple[str, str, list[str]]]:
    if not isinstance(stored, Mapping):
        raise AdapterError(f"{path}: this is no object of groups")
    for group, entities in stored.items():
        for entity, asked in entities.items():
            named = {TEAM: asked} if "answers" in asked else asked
            for attribute, question in named.items():
                try:
                    yield entity, attribute, question["answers"]
                except (KeyError, TypeError) as missing:
                    place = f"{group}.{entity}.{attribute}"
                    raise AdapterError(f"{path}: {place}: there are no answers") from missing


def _spell(answer: str, attribute: str, facets: bool, counts: dict[str, int], path: Path) -> Spell:
    value = answer.partition("|")[0].strip()
    dates = {each[1]: _date(each) for each in _DATED.finditer(answer)}
    start, end = dates.get("S"), dates.get("E")
    begins = start or end
    if not value or begins is None:
        raise AdapterError(f"{path}: a value without a name or a date: {answer!r}")
    counts["values"] += 1
    counts["year_only"] += len(begins) == 4
    counts["without_beginning"] += start is None
    counts["points"] += "P" in dates
    is_national = attribute == TEAM and _NATIONAL.search(value) is not None
    return Spell(value, begins, end, "national team" if facets and is_national else None)


def _date(match: re.Match[str]) -> str:
    """A date to its precision: zeros are what the source does not know."""
    year, month, day = match[2], match[3], match[4]
    if month == "00":
        return year
    return f"{year}-{month}" if day == "00" else f"{year}-{month}-{day}"
