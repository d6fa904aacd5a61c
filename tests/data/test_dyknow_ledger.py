"""DyKnow through the ledger: dated values in any order are one history.

How dates are read here: `S:` begins a value and `E:` ends it, by the day, or the year where no more
is known; values without a beginning are left out, as are slots with fewer than two dated values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from processor.evidence.moment import beginning
from processor.evidence.row import Row
from processor.evidence.timeline import periods
from tests.evidence.streams import arrival, row

Dated = tuple[str, str, str | None]


def slots(node: Any) -> Iterator[list[Dated]]:
    """The dated values of every slot, in the order they are stored."""
    if "answers" not in node:
        for below in node.values():
            yield from slots(below)
        return
    values = [read for answer in node["answers"] if (read := read_value(answer)) is not None]
    if len(values) > 1:
        yield values


def read_value(answer: str) -> Dated | None:
    """Read `value |S: +2006-05-15T00:00:00Z |E: ...`; None without a beginning."""
    value, *dates = (part.strip() for part in answer.split("|"))
    told = {part[:2]: part[2:].strip().lstrip("+")[:10] for part in dates}
    start, end = (as_day(told.get(name, "")) for name in ("S:", "E:"))
    return None if start is None else (value, start, end)


def as_day(written: str) -> str | None:
    """A day, or the year alone where month and day are not known."""
    if not written[:4].isdigit():
        return None
    return written[:4] if "-00" in written else written


def told(values: list[Dated]) -> Row:
    """The row after these values, told by one source."""
    return row(
        [
            arrival(place, value, valid_from=start, valid_to=end)
            for place, (value, start, end) in enumerate(values)
        ]
    )


def history(of: Row) -> list[tuple[str, str | None, str | None]]:
    """Values and windows."""
    return [(each.value.casefold(), each.valid_from, each.valid_to) for each in periods(of)]


@pytest.mark.data
def test_values_in_stored_order_give_the_history_and_windows_of_sorted_order(
    shared_data: Path,
) -> None:
    """119 slots with 1,142 dated values: out of order they are what they are in order."""
    published = json.loads((shared_data / "dyknow" / "qa_generated.json").read_text())
    stored = list(slots(published))
    assert (len(stored), sum(map(len, stored))) == (119, 1_142)
    returning = 0
    for values in stored:
        ordered = sorted(values, key=lambda each: beginning(each[1]) or 0)
        expected = told(ordered)
        assert history(told(values)) == history(expected)
        runs = [each[0] for each in history(expected)]
        returning += len(dict.fromkeys(runs)) < len(runs)
        held = [told(each).in_force() for each in (values, ordered)]
        assert len({None if h is None else h.facts[0].sense for h in held}) == 1
    assert returning == 33
