"""The text of formulas: a parser for what people write, and the printer that is its inverse.

From loosest to tightest: `<->`, `->` (both group to the right), `|`, `&`, then `~` and the
modalities. `parse(to_text(formula)) == formula` for every formula within the bounds. The tokens,
with all their spellings, live in `tokens.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, assert_never, final

from processor.engine.plausibility.formula import (
    DEPTH_MAX,
    And,
    Atom,
    Aware,
    Believes,
    Common,
    Constant,
    Explicit,
    Formula,
    FormulaError,
    Iff,
    Implies,
    Knows,
    Not,
    Or,
)
from processor.engine.plausibility.tokens import (
    GROUP_MAX,
    IS_AGENT,
    IS_VARIABLE,
    WORDS,
    Kind,
    Token,
    tokenise,
)
from schemas.formula import FORMULA_CHARS_MAX, FORMULA_PARTS_MAX

IFF, IMPLIES, OR, AND, UNARY = range(1, 6)
"""How tightly an operator binds."""

_BINDING = {Kind.IFF: IFF, Kind.IMPLIES: IMPLIES, Kind.OR: OR, Kind.AND: AND}
_OPERAND_STARTS = (Kind.WORD, Kind.QUOTED, Kind.TRUE, Kind.FALSE, Kind.NOT, Kind.OPEN)
_MODALITIES: dict[str, Callable[[str, Formula], Formula]] = {
    "K": Knows,
    "B": Believes,
    "X": Explicit,
    "A": Aware,
    "aware": Aware,
}
_BRACKETED = (*_MODALITIES, "C")
_PREFIXED = ("K", "B", "X", "C", "aware")


def parse(text: str, chars_max: int = FORMULA_CHARS_MAX, depth_max: int = DEPTH_MAX) -> Formula:
    """The formula a text stands for. Raises FormulaError with the place of the first fault."""
    if len(text) > chars_max:
        raise FormulaError(chars_max, f"the formula is longer than {chars_max} characters")
    return _Parser(tokenise(text), depth_max).whole()


@final
class _Part(NamedTuple):
    """A parsed formula and how many levels deep it is."""

    formula: Formula
    depth: int


@final
class _Parser:
    """One pass over the tokens by precedence climbing.

    `depth_max` bounds the levels of the tree and, apart from them, those of parentheses, on the way
    down, so that no text can exhaust the stack. `level` is the number of a node's ancestors as far
    as they are known, itself included.
    """

    def __init__(self, tokens: list[Token], depth_max: int) -> None:
        self._tokens = tokens
        self._next = 0
        self._open = 0
        self._depth_max = depth_max

    def whole(self) -> Formula:
        part = self._expression(IFF, 1)
        token = self._peek()
        if token.kind is not Kind.END:
            raise FormulaError(token.position, f"{token.text!r} does not belong here")
        return part.formula

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        if token.kind is not Kind.END:
            self._next += 1
        return token

    def _expect(self, kind: Kind, name: str) -> Token:
        token = self._take()
        if token.kind is not kind:
            raise FormulaError(token.position, f"expected {name}")
        return token

    def _check(self, depth: int, token: Token) -> None:
        if depth > self._depth_max:
            raise FormulaError(
                token.position, f"the formula is nested more than {self._depth_max} levels deep"
            )

    def _expression(self, loosest: int, level: int) -> _Part:
        """An operand and every operator after it that binds at least as tightly as `loosest`."""
        self._check(level, self._peek())
        left = self._operand(level)
        while True:
            token = self._peek()
            binding = _BINDING.get(token.kind)
            if binding is None or binding < loosest:
                return left
            if binding in (AND, OR):
                left = self._chain(left, token.kind, binding, level)
                continue
            self._next += 1
            right = self._expression(binding, level + 1)
            depth = 1 + max(left.depth, right.depth)
            self._check(depth, token)
            node = Implies if binding == IMPLIES else Iff
            left = _Part(node(left.formula, right.formula), depth)

    def _chain(self, first: _Part, kind: Kind, binding: int, level: int) -> _Part:
        """`a & b & c` or `a | b | c`: one node with all its parts."""
        parts = [first]
        token = self._peek()
        while self._peek().kind is kind:
            token = self._take()
            if len(parts) == FORMULA_PARTS_MAX:
                raise FormulaError(token.position, f"more than {FORMULA_PARTS_MAX} parts in a row")
            parts.append(self._expression(binding + 1, level + 1))
        depth = 1 + max(part.depth for part in parts)
        self._check(depth, token)
        node = And if binding == AND else Or
        return _Part(node(tuple(part.formula for part in parts)), depth)

    def _operand(self, level: int) -> _Part:
        token = self._take()
        match token.kind:
            case Kind.NOT:
                return self._under(Not, level, token)
            case Kind.OPEN:
                return self._parenthesised(level, token)
            case Kind.TRUE | Kind.FALSE:
                return _Part(Constant(token.kind is Kind.TRUE), 1)
            case Kind.WORD:
                return self._word(token, level)
            case Kind.QUOTED:
                return _Part(Atom(_variable(token)), 1)
            case _:
                raise FormulaError(token.position, "expected a formula")

    def _parenthesised(self, level: int, opening: Token) -> _Part:
        self._open += 1
        self._check(self._open, opening)
        inner = self._expression(IFF, level)
        self._expect(Kind.CLOSE, "a closing parenthesis")
        self._open -= 1
        return inner

    def _under(self, node: Callable[[Formula], Formula], level: int, token: Token) -> _Part:
        """The operand of a negation or a modality."""
        self._check(level + 1, token)
        inner = self._operand(level + 1)
        self._check(inner.depth + 1, token)
        return _Part(node(inner.formula), inner.depth + 1)

    def _word(self, token: Token, level: int) -> _Part:
        """An atom, or a modality: `K[a]`, `K_{a}`, or `K_a` where an operand follows it."""
        name, mark, rest = token.text.partition("_")
        if token.text in _BRACKETED and self._peek().kind is Kind.OPEN_GROUP:
            return self._modality(token.text, self._group(), level, token)
        if mark and name in _PREFIXED:
            if not rest and self._peek().kind is Kind.OPEN_GROUP:
                return self._modality(name, self._group(), level, token)
            if rest and self._peek().kind in _OPERAND_STARTS:
                agent = _agent(rest, token.position + len(name) + 1)
                return self._modality(name, (agent,), level, token)
        return _Part(Atom(_variable(token)), 1)

    def _group(self) -> tuple[str, ...]:
        """`[a, b]` or `{a, b}`."""
        opening = self._take()
        agents: list[str] = []
        while True:
            token = self._take()  # of any kind: a reserved word can be somebody's name
            agents.append(_agent(token.text, token.position))
            if len(agents) > GROUP_MAX:
                raise FormulaError(token.position, f"more than {GROUP_MAX} agents in a group")
            token = self._take()
            if token.kind is Kind.CLOSE_GROUP and _PAIRS[opening.text] == token.text:
                return tuple(agents)
            if token.kind is not Kind.COMMA:
                raise FormulaError(token.position, f"expected ',' or {_PAIRS[opening.text]!r}")

    def _modality(self, name: str, agents: tuple[str, ...], level: int, token: Token) -> _Part:
        if name == "C":
            return self._under(lambda inner: Common(agents, inner), level, token)
        if len(agents) != 1:
            raise FormulaError(token.position, f"{name} takes one agent")
        node = _MODALITIES[name]
        return self._under(lambda inner: node(agents[0], inner), level, token)


_PAIRS = {"[": "]", "{": "}"}


def _variable(token: Token) -> str:
    name = token.text[1:-1] if token.kind is Kind.QUOTED else token.text
    if IS_VARIABLE.fullmatch(name) is None:
        raise FormulaError(token.position, "this is no name of a variable")
    return name


def _agent(name: str, position: int) -> str:
    if IS_AGENT.fullmatch(name) is None:
        raise FormulaError(position, "expected the name of an agent")
    return name


def to_text(formula: Formula) -> str:
    """The canonical text: the fewest parentheses that keep the tree, agents in brackets."""
    return _text_and_binding(formula)[0]


def _text(formula: Formula, loosest: int) -> str:
    """The text of a subformula, in parentheses where it binds more loosely than `loosest`."""
    text, binding = _text_and_binding(formula)
    return text if binding >= loosest else f"({text})"


def _text_and_binding(formula: Formula) -> tuple[str, int]:
    match formula:
        case Atom(name):
            return (f'"{name}"' if name in WORDS else name), UNARY
        case Constant(value):
            return ("true" if value else "false"), UNARY
        case Not(inner):
            return f"~{_text(inner, UNARY)}", UNARY
        case And(parts):
            return " & ".join(_text(part, UNARY) for part in parts), AND
        case Or(parts):
            return " | ".join(_text(part, AND) for part in parts), OR
        case Implies(left, right):
            return f"{_text(left, OR)} -> {_text(right, IMPLIES)}", IMPLIES
        case Iff(left, right):
            return f"{_text(left, IMPLIES)} <-> {_text(right, IFF)}", IFF
        case Knows(agent, inner):
            return f"K[{agent}] {_text(inner, UNARY)}", UNARY
        case Believes(agent, inner):
            return f"B[{agent}] {_text(inner, UNARY)}", UNARY
        case Common(agents, inner):
            return f"C[{', '.join(agents)}] {_text(inner, UNARY)}", UNARY
        case Aware(agent, inner):
            return f"aware[{agent}] {_text(inner, UNARY)}", UNARY
        case Explicit(agent, inner):
            return f"X[{agent}] {_text(inner, UNARY)}", UNARY
        case _:
            assert_never(formula)
