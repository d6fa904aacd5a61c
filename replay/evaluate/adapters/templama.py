"""TempLAMA: the answers of a (subject, relation) year by year, 2010 to 2020, as dated slots.

JSON Lines; a line has a `slot`, a `date` (year), a `query` in which `_X_` stands for the answer,
and a set of answers. The years in which a value is among the answers, as long as no listed year is
between them without it, are one spell; one that reaches the last listed year goes on.

Source: Dhingra et al. 2022, TempLAMA, google-research/language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import final

from replay.evaluate.adapters import Published, parse_published
from replay.evaluate.adapters.dated import Slot, Spell


@final
class Name(Published):
    """One answer."""

    name: str


@final
class Line(Published):
    """The answers of one slot in one year."""

    slot: str
    relation: str
    date: str
    query: str
    answer: tuple[Name, ...]


def slots(path: Path) -> tuple[Slot, ...]:
    """The slots of a published file. Raises AdapterError, OSError."""
    lines: dict[str, dict[str, Line]] = {}
    for number, stored in enumerate(path.read_bytes().splitlines(), start=1):
        if stored.strip():
            line = parse_published(Line, stored, f"{path}:{number}")
            lines.setdefault(line.slot, {})[line.date] = line
    return tuple(
        Slot(
            slot,
            next(iter(by_year.values())).query,
            next(iter(by_year.values())).relation,
            tuple(sorted(_spells(by_year), key=lambda each: (each.start, each.end or "9999"))),
        )
        for slot, by_year in lines.items()
    )


def _spells(by_year: Mapping[str, Line]) -> Iterator[Spell]:
    years = sorted(by_year)
    began: dict[str, str] = {}
    for place, year in enumerate(years):
        now = dict.fromkeys(each.name for each in by_year[year].answer)
        for value in [value for value in began if value not in now]:
            yield Spell(value, began.pop(value), years[place - 1])
        for value in now:
            began.setdefault(value, year)
    yield from (Spell(value, start) for value, start in began.items())
