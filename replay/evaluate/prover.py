"""A small prover for the formulas of ReviseQA: predicates of named things and of all things.

Formulas are written with the usual signs: not, and, or, either-or, if, if and only if, and "for all
x"; `false` is a formula, a hyphen is a negation, and a full stop at the end is nothing, as some of
the published ones have it. What holds of all things is taken to hold of each thing that is named
anywhere, so a formula is propositional. A set of formulas is decided by choosing truth values one
by one and giving up as soon as a formula is false: slow in general, quick for a dozen short ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

Formula: TypeAlias = tuple["str | Formula", ...]
"""`("atom", name)`, `("false",)`, `("not", formula)`, or `(operator, formula, formula)`."""

_TOKEN = re.compile(r"\s*(∀\s*\w+|[-¬∧\N{LOGICAL OR}⊕→↔()]|\w+\(\s*\w+\s*\)|false\b)")
_APPLIED = re.compile(r"(\w+)\(\s*(\w+)\s*\)")
_QUANTIFIER = re.compile(r"∀\s*(\w+)")
_OPERATORS = {"↔": "iff", "→": "if", "⊕": "either", "\N{LOGICAL OR}": "or", "∧": "and"}
_BINDING = tuple(_OPERATORS.values())
"""Weakest first."""


class NotAFormula(ValueError):  # noqa: N818 - it says what is wrong
    """A text that is no formula of this kind."""


def names_in(texts: Iterable[str]) -> tuple[str, ...]:
    """The things that the formulas name."""
    found: dict[str, None] = {}
    for text in texts:
        bound = [each[1] for each in _QUANTIFIER.finditer(text)]
        found |= {each[2]: None for each in _APPLIED.finditer(text) if each[2] not in bound}
    return tuple(found)


def read_formula(text: str, names: Sequence[str]) -> Formula:
    """One formula with its quantifiers written out over the names. Raises NotAFormula."""
    found = _tokens(text.strip().removesuffix("."))
    formula, rest = _read(found, 0, names)
    if rest:
        raise NotAFormula(f"{text!r}: nothing was expected at {rest[0]!r}")
    return formula


def is_consistent(formulas: Sequence[Formula]) -> bool:
    """Whether all of them can be true together."""
    return _satisfiable(_shortest_first(formulas), {})


def entails(formulas: Sequence[Formula], conclusion: Formula) -> bool:
    """Whether the conclusion is true wherever all of them are."""
    return not _satisfiable(_shortest_first((*formulas, ("not", conclusion))), {})


def _tokens(text: str) -> list[str]:
    tokens, place = [], 0
    while place < len(text.rstrip()):
        match = _TOKEN.match(text, place)
        if match is None:
            raise NotAFormula(f"{text!r}: no formula from place {place} on")
        tokens.append(_OPERATORS.get(match[1], match[1]))
        place = match.end()
    return tokens


def _read(tokens: list[str], level: int, names: Sequence[str]) -> tuple[Formula, list[str]]:
    """A formula whose operators bind at least as strongly as this level, and what is left."""
    if level == len(_BINDING):
        return _read_one(tokens, names)
    left, rest = _read(tokens, level + 1, names)
    while rest and rest[0] == _BINDING[level]:
        from_right = level if _BINDING[level] == "if" else level + 1
        right, rest = _read(rest[1:], from_right, names)
        left = (_BINDING[level], left, right)
    return left, rest


def _read_one(tokens: list[str], names: Sequence[str]) -> tuple[Formula, list[str]]:
    if not tokens:
        raise NotAFormula("a formula ends too early")
    first, rest = tokens[0], tokens[1:]
    quantified = _QUANTIFIER.fullmatch(first)
    applied = _APPLIED.fullmatch(first)
    if first in ("¬", "-"):
        inner, rest = _read_one(rest, names)
        return ("not", inner), rest
    if first == "false":
        return (first,), rest
    if first == "(":
        inner, rest = _read(rest, 0, names)
        if not rest or rest[0] != ")":
            raise NotAFormula("a bracket is not closed")
        return inner, rest[1:]
    if quantified is not None:
        body, rest = _read_one(rest, names)
        each = [_of(body, quantified[1], name) for name in names]
        return _all(each), rest
    if applied is not None:
        return ("atom", f"{applied[1]}({applied[2]})"), rest
    raise NotAFormula(f"nothing was expected at {first!r}")


def _all(formulas: Sequence[Formula]) -> Formula:
    if not formulas:
        raise NotAFormula("nothing is named that the formula could be about")
    whole = formulas[0]
    for formula in formulas[1:]:
        whole = ("and", whole, formula)
    return whole


def _of(formula: Formula, variable: str, name: str) -> Formula:
    """The formula about one thing."""
    if formula[0] == "atom":
        predicate = str(formula[1])
        return ("atom", predicate.replace(f"({variable})", f"({name})"))
    return (formula[0], *(_of(part, variable, name) for part in _parts(formula)))


def _parts(formula: Formula) -> Iterator[Formula]:
    for part in formula[1:]:
        assert isinstance(part, tuple)
        yield part


def _shortest_first(formulas: Iterable[Formula]) -> tuple[Formula, ...]:
    """What leaves one choice comes first, so that little is tried in vain."""
    return tuple(sorted(formulas, key=_size))


def _size(formula: Formula) -> int:
    return 1 if formula[0] == "atom" else 1 + sum(map(_size, _parts(formula)))


def _satisfiable(formulas: tuple[Formula, ...], chosen: Mapping[str, bool]) -> bool:
    open_ones = []
    for formula in formulas:
        value = _value(formula, chosen)
        if value is False:
            return False
        if value is None:
            open_ones.append(formula)
    if not open_ones:
        return True
    atom = _undecided(open_ones[0], chosen)
    return any(_satisfiable(tuple(open_ones), {**chosen, atom: value}) for value in (True, False))


def _undecided(formula: Formula, chosen: Mapping[str, bool]) -> str:
    """The first atom of an open formula that has no value yet and matters."""
    if formula[0] == "atom":
        return str(formula[1])
    part = next(part for part in _parts(formula) if _value(part, chosen) is None)
    return _undecided(part, chosen)


def _value(formula: Formula, chosen: Mapping[str, bool]) -> bool | None:
    """Whether the formula is true, or None if that is open."""
    operator = formula[0]
    if operator == "atom":
        return chosen.get(str(formula[1]))
    if operator == "false":
        return False
    values = [_value(part, chosen) for part in _parts(formula)]
    if operator == "not":
        return None if values[0] is None else not values[0]
    left, right = values
    match operator:
        case "and":
            return False if False in values else None if None in values else True
        case "or":
            return True if True in values else None if None in values else False
        case "if":
            if left is False or right is True:
                return True
            return None if None in values else False
        case "either":
            return None if None in values else left != right
        case "iff":
            return None if None in values else left == right
    raise AssertionError(operator)
