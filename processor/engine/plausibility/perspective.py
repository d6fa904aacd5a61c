"""Perspectives: which entries of the log a chain of agents has in mutual view.

For a set S of agents the perspective keeps the entries whose audience contains S. It starts at the
empty set, which keeps them all; K_i, B_i and X_i move from S to S + {i}. What is kept is all that
matters, so a perspective is represented by the private audiences it keeps; entries for everyone it
always keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias, final

from processor.engine.plausibility.bounds import (
    BoundExceeded,
    CommonKnowledgeUndefined,
    Meter,
)
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


@final
class View(NamedTuple):
    """What is looked at: the law in a perspective, or what an agent finds most plausible there."""

    perspective: Perspective
    believer: str | None = None


def visited(formula: Formula, perspective: Perspective) -> Iterator[View]:
    """Every view of the model that evaluating the formula takes, perhaps more than once."""
    pending: list[tuple[Formula, Perspective]] = [(formula, perspective)]
    while pending:
        node, here = pending.pop()
        if isinstance(node, Knows | Believes | Explicit):
            there = seen_by(here, node.agent)
            yield View(there, node.agent if isinstance(node, Believes) else None)
            pending.append((node.formula, there))
        elif isinstance(node, Common):
            yield View(here)
            pending.append((node.formula, here))
        elif not isinstance(node, Aware):
            pending.extend((child, here) for child in children(node))


def closure(
    formula: Formula,
    start: Perspective,
    of_log: Sequence[tuple[Audience, Formula]],
    limit: int,
    meter: Meter,
) -> tuple[list[Perspective], list[View]]:
    """Every perspective, and every belief in it, that evaluating the formula needs.

    `of_log` are the formulas of the log with modalities, each with its audience: what they look at
    must be known to know the model. Raises BoundExceeded (perspectives, steps).
    """
    perspectives = {start: None}
    beliefs: dict[View, None] = {}
    pending = [start]

    def look_at(views: Iterable[View]) -> None:
        for view in views:
            meter.spend()
            if view.believer is not None:
                beliefs[view] = None
            if view.perspective not in perspectives:
                perspectives[view.perspective] = None
                pending.append(view.perspective)
        if len(perspectives) > limit:
            raise BoundExceeded("perspectives", limit)

    look_at(visited(formula, start))
    while pending:
        perspective = pending.pop()
        for audience, spoken in of_log:
            if keeps(perspective, audience):
                look_at(visited(spoken, perspective))
    return list(perspectives), list(beliefs)
