"""Perspectives: which entries of the log a chain of agents has in mutual view.

For a set S of agents the perspective keeps the entries whose audience contains S. It starts at the
empty set, which keeps them all; K_i, B_i and X_i move from S to S + {i}. What is kept is all that
matters, so a perspective is represented by the private audiences it keeps; entries for everyone it
always keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from processor.engine.plausibility.bounds import BoundExceeded, CommonKnowledgeUndefined
from processor.engine.plausibility.formula import (
    Aware,
    Believes,
    Common,
    Explicit,
    Formula,
    Knows,
    children,
)
from processor.engine.plausibility.update import Audience

Perspective: TypeAlias = frozenset[tuple[str, ...]]
"""The private audiences that are kept; only membership is ever asked, so order cannot show."""

EVERYONE_ONLY: Perspective = frozenset()
"""Keeps what was said to everyone, and nothing else."""


def keeps(perspective: Perspective, audience: Audience) -> bool:
    """Whether what this audience heard belongs to the perspective."""
    return audience is None or audience in perspective


def seen_by(perspective: Perspective, agent: str) -> Perspective:
    """The perspective of S + {agent}, from that of S."""
    if not perspective:
        return perspective
    return frozenset(audience for audience in perspective if agent in audience)


def require_common(perspective: Perspective, agents: tuple[str, ...]) -> None:
    """Check that each of the agents heard every entry of the perspective.

    Raises CommonKnowledgeUndefined otherwise. Then the perspective of each of them is this one.
    """
    if not all(agent in audience for audience in perspective for agent in agents):
        raise CommonKnowledgeUndefined(agents)


def visited(formula: Formula, perspective: Perspective) -> Iterator[Perspective]:
    """Every perspective in which evaluating the formula looks at the model."""
    pending: list[tuple[Formula, Perspective]] = [(formula, perspective)]
    while pending:
        node, here = pending.pop()
        if isinstance(node, Knows | Believes | Explicit):
            there = seen_by(here, node.agent)
            yield there
            pending.append((node.formula, there))
        elif isinstance(node, Common):
            yield here
            pending.append((node.formula, here))
        elif not isinstance(node, Aware):
            pending.extend((child, here) for child in children(node))


def closure(
    start: Iterable[Perspective], formulas: list[tuple[Audience, Formula]], limit: int
) -> list[Perspective]:
    """Every perspective whose model is needed to know that of the starting ones.

    `formulas` are the formulas of the log with modalities, each with its audience. Raises
    BoundExceeded (perspectives) beyond the limit.
    """
    found = dict.fromkeys(start)
    pending = list(found)
    while pending:
        perspective = pending.pop()
        for audience, formula in formulas:
            if not keeps(perspective, audience):
                continue
            for other in visited(formula, perspective):
                if other not in found:
                    found[other] = None
                    pending.append(other)
        if len(found) > limit:
            raise BoundExceeded("perspectives", limit)
    return list(found)
