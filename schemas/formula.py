"""Formulas on the wire: a closed tree of nodes, each tagged by `node`.

People write formulas as text (`tok_bug & (tok_bug -> p_traffic)`); programs and the log carry this
tree. The parser lives with the engine, because only the engine gives the nodes a meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from schemas.contract import Contract
from schemas.ids import AgentId, VariableName

FORMULA_CHARS_MAX = 8_192
FORMULA_PARTS_MAX = 256
FORMULA_DEPTH_MAX = 64
"""Levels of a tree, an atom alone being one. JSON readers stop at some 200 levels, so a deeper tree
could be written to the log and never be read again; the parser of the text form keeps to it too."""


class AtomNode(Contract):
    """A propositional variable."""

    node: Literal["atom"]
    name: VariableName


class ConstantNode(Contract):
    """Truth or falsehood."""

    node: Literal["constant"]
    value: bool


class NotNode(Contract):
    """Negation."""

    node: Literal["not"]
    formula: FormulaNode


class AndNode(Contract):
    """Conjunction of two or more parts."""

    node: Literal["and"]
    parts: Annotated[tuple[FormulaNode, ...], Field(min_length=2, max_length=FORMULA_PARTS_MAX)]


class OrNode(Contract):
    """Disjunction of two or more parts."""

    node: Literal["or"]
    parts: Annotated[tuple[FormulaNode, ...], Field(min_length=2, max_length=FORMULA_PARTS_MAX)]


class ImpliesNode(Contract):
    """Material implication."""

    node: Literal["implies"]
    antecedent: FormulaNode
    consequent: FormulaNode


class IffNode(Contract):
    """Material equivalence."""

    node: Literal["iff"]
    left: FormulaNode
    right: FormulaNode


class KnowsNode(Contract):
    """K_i: true at every world the agent cannot tell apart."""

    node: Literal["knows"]
    agent: AgentId
    formula: FormulaNode


class BelievesNode(Contract):
    """B_i: true at the agent's most plausible worlds."""

    node: Literal["believes"]
    agent: AgentId
    formula: FormulaNode


class CommonNode(Contract):
    """C_G: everybody in the group knows, and knows that they know, without end."""

    node: Literal["common"]
    agents: Annotated[tuple[AgentId, ...], Field(min_length=1, max_length=64)]
    formula: FormulaNode


class AwareNode(Contract):
    """aware_i: the agent has every variable of the formula in mind."""

    node: Literal["aware"]
    agent: AgentId
    formula: FormulaNode


class ExplicitNode(Contract):
    """X_i: explicit knowledge, knowledge together with awareness."""

    node: Literal["explicit"]
    agent: AgentId
    formula: FormulaNode


FormulaNode = Annotated[
    AtomNode
    | ConstantNode
    | NotNode
    | AndNode
    | OrNode
    | ImpliesNode
    | IffNode
    | KnowsNode
    | BelievesNode
    | CommonNode
    | AwareNode
    | ExplicitNode,
    Field(discriminator="node"),
]


def formula_depth(formula: Contract) -> int:
    """The number of levels of a formula tree; counting stops just above the bound."""
    depth, level = 0, [formula]
    while level and depth <= FORMULA_DEPTH_MAX:
        depth += 1
        level = [part for node in level for part in _parts(node)]
    return depth


def _parts(node: Contract) -> Iterator[Contract]:
    for field in node.__dict__.values():
        if isinstance(field, Contract):
            yield field
        elif isinstance(field, tuple):
            yield from (part for part in field if isinstance(part, Contract))


def _bounded_depth(formula: FormulaNode) -> FormulaNode:
    if formula_depth(formula) > FORMULA_DEPTH_MAX:
        raise ValueError(f"a formula has at most {FORMULA_DEPTH_MAX} levels")
    return formula


FormulaText = Annotated[str, Field(min_length=1, max_length=FORMULA_CHARS_MAX)]
FormulaTree = Annotated[FormulaNode, AfterValidator(_bounded_depth)]
FormulaInput = FormulaText | FormulaTree
"""What an utterance may bring: text for people, the tree for programs. The log holds the tree."""

for _node in (
    NotNode,
    AndNode,
    OrNode,
    ImpliesNode,
    IffNode,
    KnowsNode,
    BelievesNode,
    CommonNode,
    AwareNode,
    ExplicitNode,
):
    _node.model_rebuild()
