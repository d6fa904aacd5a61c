"""Granularity: which of two values says the same more precisely."""

from __future__ import annotations

import re

_BETWEEN = re.compile(r"[\s,;()]+|(?<=\w)[-/.:](?=\w)")
_NUMBER = re.compile(r"[+-]?[0-9]+([.,][0-9]+)?")
_TURNS_ROUND = (
    *("anti", "ex", "except", "excluding", "former", "formerly", "never", "no", "non", "not"),
    *("old", "or", "previous", "previously", "un", "without"),
)
"""A longer value with one of these does not narrow the shorter one; it says something else."""


def is_finer(value: str, than: str) -> bool:
    """Whether one normalised value narrows another: it has all of its words in a row, and more.

    So a date with its month narrows the year, and a city with its country the country. A number
    with more digits is another number.
    """
    if len(value) <= len(than) or (_NUMBER.fullmatch(value) and _NUMBER.fullmatch(than)):
        return False
    words, part = _words(value), _words(than)
    if not part or len(words) <= len(part):
        return False
    for start in range(len(words) - len(part) + 1):
        if words[start : start + len(part)] == part:
            more = words[:start] + words[start + len(part) :]
            return not any(word in _TURNS_ROUND for word in more)
    return False


def _words(value: str) -> list[str]:
    return [word for word in _BETWEEN.split(value) if word]
