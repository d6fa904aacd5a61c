"""What world sets need of a decision-diagram library: managers and the nodes of their diagrams."""

from __future__ import annotations

from typing import Protocol, Self

from processor.engine.plausibility.bounds import Bounds


class Node(Protocol):
    """The root of a diagram. Equal diagrams of one manager are equal nodes."""

    def __invert__(self) -> Self:
        """The diagram of the complement."""

    def __len__(self) -> int:
        """How many nodes the diagram has; ask the manager, which gives it the stack it needs."""

    def __int__(self) -> int:
        """A number that tells nodes apart as long as they live."""

    @property
    def negated(self) -> bool:
        """Whether the node stands for the complement of what its branches say."""

    @property
    def var(self) -> str | None:
        """The top variable, as the manager calls it; None of a constant, or an error."""

    @property
    def low(self) -> Self | None:
        """The branch where the top variable is false; None of a constant."""

    @property
    def high(self) -> Self | None:
        """The branch where the top variable is true; None of a constant."""


class Manager(Protocol):
    """Owner of diagrams. Its variables are called `0`, `1`, ... in the order they were added."""

    @property
    def true(self) -> Node:
        """The diagram of everything."""

    def add_variable(self) -> Node:
        """A new variable on top of all others."""

    def size(self, root: Node) -> int:
        """How many nodes the diagram has."""

    def both(self, left: Node, right: Node) -> Node:
        """Conjunction. Raises BoundExceeded (nodes)."""

    def project(self, cube: Node, root: Node) -> Node:
        """The root without the variables of the cube: true where some value of theirs makes it so.

        Raises BoundExceeded (nodes).
        """


def open_manager(bounds: Bounds) -> Manager:
    """A new manager of the best library there is.

    The libraries take longer to load than a query takes to answer, and a conversation without
    formulas needs none.
    """
    from processor.engine.plausibility.libraries import best_manager

    return best_manager(bounds)
