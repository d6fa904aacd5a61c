"""Formulas of epistemic plausibility logic: the tree, its walks, and its wire form.

The language: variables, truth and falsehood, the Boolean connectives, K_i (knowledge), B_i
(belief), C_G (common knowledge), aware_i (awareness, Definition A.3), and explicit knowledge
X_i = K_i and aware_i. A node is a frozen value, so equal trees are equal formulas. `and` and `or`
take two or more parts and keep the grouping they were written with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from schemas import formula as wire
from schemas.formula import FORMULA_CHARS_MAX

DEPTH_MAX = 64
"""Levels of nesting of a formula, the variable at the bottom included."""
SIZE_MAX = FORMULA_CHARS_MAX
"""Nodes of a formula: as many as the longest text could hold."""


class FormulaError(ValueError):
    """A text or a wire tree that is no formula.

    `position` is the place of the fault in the text, in characters from 0 (0 for a wire tree);
    `reason` says what was wrong there.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"at character {position}: {reason}")
        self.position = position
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Atom:
    """A propositional variable; every record's id is one."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """Truth or falsehood."""

    value: bool


@dataclass(frozen=True, slots=True)
class Not:
    """Negation."""

    formula: Formula


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction of two or more parts."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction of two or more parts."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Implies:
    """Material implication."""

    antecedent: Formula
    consequent: Formula


@dataclass(frozen=True, slots=True)
class Iff:
    """Material equivalence."""

    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Knows:
    """K_i: true at every world of the agent's cell."""

    agent: str
    formula: Formula


@dataclass(frozen=True, slots=True)
class Believes:
    """B_i: true at the most plausible worlds of the agent's cell."""

    agent: str
    formula: Formula


@dataclass(frozen=True, slots=True)
class Common:
    """C_G: the whole group knows, and knows that it knows, without end."""

    agents: tuple[str, ...]
    formula: Formula


@dataclass(frozen=True, slots=True)
class Aware:
    """aware_i: the agent has every variable of the formula in mind."""

    agent: str
    formula: Formula


@dataclass(frozen=True, slots=True)
class Explicit:
    """X_i: explicit knowledge, K_i and aware_i of the same formula."""

    agent: str
    formula: Formula


Formula: TypeAlias = (
    Atom | Constant | Not | And | Or | Implies | Iff | Knows | Believes | Common | Aware | Explicit
)


def children(formula: Formula) -> tuple[Formula, ...]:
    """The direct subformulas, from left to right."""
    match formula:
        case Atom() | Constant():
            return ()
        case And(parts) | Or(parts):
            return parts
        case Implies(left, right) | Iff(left, right):
            return (left, right)
        case Not(inner) | Knows(_, inner) | Believes(_, inner) | Common(_, inner):
            return (inner,)
        case Aware(_, inner) | Explicit(_, inner):
            return (inner,)
        case _:
            assert_never(formula)


def subformulas(formula: Formula) -> Iterator[Formula]:
    """The formula and everything under it, each node before its children, left to right."""
    pending = [formula]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(children(node)))


def atoms(formula: Formula) -> tuple[str, ...]:
    """The variables of the formula, each once, in the order in which they first stand in it."""
    return tuple(
        dict.fromkeys(node.name for node in subformulas(formula) if isinstance(node, Atom))
    )


def has_modality(formula: Formula) -> bool:
    """Whether the formula speaks of anybody's knowledge, belief or awareness."""
    modalities = (Knows, Believes, Common, Aware, Explicit)
    return any(isinstance(node, modalities) for node in subformulas(formula))


def has_common_knowledge(formula: Formula) -> bool:
    """Whether the formula speaks of common knowledge, which is not defined everywhere."""
    return any(isinstance(node, Common) for node in subformulas(formula))


def minded(formula: Formula) -> tuple[str, ...]:
    """The variables whose being in somebody's mind the formula's truth depends on, each once."""
    found: dict[str, None] = {}
    for node in subformulas(formula):
        if isinstance(node, Aware | Explicit):
            found.update(dict.fromkeys(atoms(node.formula)))
    return tuple(found)


def literal(formula: Formula) -> tuple[str, bool] | None:
    """The variable and the sign of a formula that is a variable or its negation, else None."""
    match formula:
        case Atom(name):
            return name, True
        case Not(Atom(name)):
            return name, False
        case _:
            return None


def from_wire(node: wire.FormulaNode) -> Formula:
    """The formula of a wire tree. Raises FormulaError beyond DEPTH_MAX levels or SIZE_MAX nodes."""
    _check_extent(node)
    return _from_wire(node)


def _check_extent(root: wire.FormulaNode) -> None:
    """Bound depth and size before anything recurses into the tree."""
    pending = [(root, 1)]
    size = 0
    while pending:
        node, depth = pending.pop()
        size += 1
        if depth > DEPTH_MAX:
            raise FormulaError(0, f"the formula is nested more than {DEPTH_MAX} levels deep")
        if size > SIZE_MAX:
            raise FormulaError(0, f"the formula has more than {SIZE_MAX} nodes")
        pending.extend((child, depth + 1) for child in _wire_children(node))


def _wire_children(node: wire.FormulaNode) -> tuple[wire.FormulaNode, ...]:
    match node:
        case wire.AtomNode() | wire.ConstantNode():
            return ()
        case wire.AndNode() | wire.OrNode():
            return node.parts
        case wire.ImpliesNode():
            return (node.antecedent, node.consequent)
        case wire.IffNode():
            return (node.left, node.right)
        case wire.NotNode() | wire.KnowsNode() | wire.BelievesNode() | wire.CommonNode():
            return (node.formula,)
        case wire.AwareNode() | wire.ExplicitNode():
            return (node.formula,)
        case _:
            assert_never(node)


def _from_wire(node: wire.FormulaNode) -> Formula:
    match node:
        case wire.AtomNode():
            return Atom(node.name)
        case wire.ConstantNode():
            return Constant(node.value)
        case wire.NotNode():
            return Not(_from_wire(node.formula))
        case wire.AndNode():
            return And(tuple(_from_wire(part) for part in node.parts))
        case wire.OrNode():
            return Or(tuple(_from_wire(part) for part in node.parts))
        case wire.ImpliesNode():
            return Implies(_from_wire(node.antecedent), _from_wire(node.consequent))
        case wire.IffNode():
            return Iff(_from_wire(node.left), _from_wire(node.right))
        case wire.KnowsNode():
            return Knows(node.agent, _from_wire(node.formula))
        case wire.BelievesNode():
            return Believes(node.agent, _from_wire(node.formula))
        case wire.CommonNode():
            return Common(node.agents, _from_wire(node.formula))
        case wire.AwareNode():
            return Aware(node.agent, _from_wire(node.formula))
        case wire.ExplicitNode():
            return Explicit(node.agent, _from_wire(node.formula))
        case _:
            assert_never(node)


def to_wire(formula: Formula) -> wire.FormulaNode:
    """The wire tree of a formula; the inverse of `from_wire`."""
    match formula:
        case Atom(name):
            return wire.AtomNode(node="atom", name=name)
        case Constant(value):
            return wire.ConstantNode(node="constant", value=value)
        case Not(inner):
            return wire.NotNode(node="not", formula=to_wire(inner))
        case And(parts):
            return wire.AndNode(node="and", parts=tuple(to_wire(part) for part in parts))
        case Or(parts):
            return wire.OrNode(node="or", parts=tuple(to_wire(part) for part in parts))
        case Implies(left, right):
            return wire.ImpliesNode(
                node="implies", antecedent=to_wire(left), consequent=to_wire(right)
            )
        case Iff(left, right):
            return wire.IffNode(node="iff", left=to_wire(left), right=to_wire(right))
        case Knows(agent, inner):
            return wire.KnowsNode(node="knows", agent=agent, formula=to_wire(inner))
        case Believes(agent, inner):
            return wire.BelievesNode(node="believes", agent=agent, formula=to_wire(inner))
        case Common(agents, inner):
            return wire.CommonNode(node="common", agents=agents, formula=to_wire(inner))
        case Aware(agent, inner):
            return wire.AwareNode(node="aware", agent=agent, formula=to_wire(inner))
        case Explicit(agent, inner):
            return wire.ExplicitNode(node="explicit", agent=agent, formula=to_wire(inner))
        case _:
            assert_never(formula)
