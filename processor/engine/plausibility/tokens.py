"""The tokens of formula text, with every spelling people may use.

A word is an id as the contracts define it; `-` belongs to it unless `>` follows. Reserved words can
still name a variable when they stand in double quotes.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple, final

from processor.engine.plausibility.formula import FormulaError
from schemas.ids import NAME_PATTERN, RECORD_PATTERN

IS_VARIABLE = re.compile(RECORD_PATTERN)
IS_AGENT = re.compile(NAME_PATTERN)
GROUP_MAX = 64
"""Agents of a group, as on the wire."""


@final
class Kind(Enum):
    """What a token is."""

    WORD = auto()
    QUOTED = auto()
    TRUE = auto()
    FALSE = auto()
    NOT = auto()
    AND = auto()
    OR = auto()
    IMPLIES = auto()
    IFF = auto()
    OPEN = auto()
    CLOSE = auto()
    OPEN_GROUP = auto()
    CLOSE_GROUP = auto()
    COMMA = auto()
    END = auto()


@final
class Token(NamedTuple):
    """A token and the place of its first character, from 0."""

    kind: Kind
    text: str
    position: int


WORDS = {
    "true": Kind.TRUE,
    "false": Kind.FALSE,
    "not": Kind.NOT,
    "and": Kind.AND,
    "or": Kind.OR,
    "implies": Kind.IMPLIES,
    "iff": Kind.IFF,
}
_SIGNS = {
    "~": Kind.NOT,
    "!": Kind.NOT,
    "¬": Kind.NOT,
    "&&": Kind.AND,
    "&": Kind.AND,
    "∧": Kind.AND,
    "||": Kind.OR,
    "|": Kind.OR,
    "∨": Kind.OR,  # noqa: RUF001 - logical or, on purpose
    "<->": Kind.IFF,
    "<=>": Kind.IFF,
    "↔": Kind.IFF,
    "->": Kind.IMPLIES,
    "=>": Kind.IMPLIES,
    "→": Kind.IMPLIES,
    "(": Kind.OPEN,
    ")": Kind.CLOSE,
    "[": Kind.OPEN_GROUP,
    "{": Kind.OPEN_GROUP,
    "]": Kind.CLOSE_GROUP,
    "}": Kind.CLOSE_GROUP,
    ",": Kind.COMMA,
}
_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z0-9](?:[A-Za-z0-9._:@'/]|-(?!>))*)"
    r'|(?P<quoted>"[^"]*")'
    r"|(?P<sign>" + "|".join(map(re.escape, _SIGNS)) + "))"
)


def tokenise(text: str) -> list[Token]:
    """The tokens of a text, ended by one of kind END. Raises FormulaError at what is no token."""
    tokens: list[Token] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            place = position + len(text[position:]) - len(text[position:].lstrip())
            raise FormulaError(place, f"{text[place]!r} has no meaning in a formula")
        tokens.append(_token(match))
        position = match.end()
    tokens.append(Token(Kind.END, "", len(text)))
    return tokens


def _token(match: re.Match[str]) -> Token:
    name = match.lastgroup
    assert name is not None
    text = match[name]
    if name == "word":
        return Token(WORDS.get(text, Kind.WORD), text, match.start(name))
    if name == "quoted":
        return Token(Kind.QUOTED, text, match.start(name))
    return Token(_SIGNS[text], text, match.start(name))
