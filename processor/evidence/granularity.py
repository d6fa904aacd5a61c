"""Granularity: which of two values says the same more precisely."""

from __future__ import annotations

import re
from functools import lru_cache

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
    found = f" {words} ".find(f" {part} ")
    if not part or len(words) <= len(part) or found < 0:
        return False
    more = words[:found].split() + words[found + len(part) :].split()
    return not any(word in _TURNS_ROUND for word in more)


@lru_cache(maxsize=4_096)
def _words(value: str) -> str:
    """The words of a value with one space between them: none holds a space itself."""
    return " ".join(word for word in _BETWEEN.split(value) if word)
