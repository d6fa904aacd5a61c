"""Sets of possible worlds as binary decision diagrams.

The variable order is the order in which variables were added, the newest on top, and never changes:
diagrams grow at the top while the log grows, and the size of a set is a function of the set and
that order alone. A result of more than `bounds.nodes` nodes raises BoundExceeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from processor.engine.plausibility.bounds import BoundExceeded, Bounds
from processor.engine.plausibility.manager import Manager, Node, open_manager

NODE_PAIRS_MAX = 1_000_000_000
"""An operation visits at most each pair of nodes of its operands; beyond this it is not begun."""


@final
class DiagramSpace:
    """The variables and the manager that holds the diagrams."""

    def __init__(self, bounds: Bounds, manager: Manager | None = None) -> None:
        self.capacity = bounds.variables
        self._nodes_max = bounds.nodes
        self._manager = open_manager(bounds) if manager is None else manager
        self._variables: dict[str, Node] = {}
        self._positions: dict[str, int] = {}
        self._hidden: dict[tuple[str, ...], tuple[int, Node]] = {}

    def __len__(self) -> int:
        return len(self._positions)

    def position(self, variable: str) -> int | None:
        """The place of a variable in the order, from 0; None if it was not added."""
        return self._positions.get(variable)

    def add(self, variable: str) -> None:
        """Add a variable as the last one: the top of every diagram that depends on it."""
        assert variable not in self._positions, variable
        assert len(self._positions) < self.capacity, "there is no place left"
        self._positions[variable] = len(self._positions)
        self._variables[variable] = self._manager.add_variable()

    def everything(self) -> DiagramSet:
        """All worlds."""
        return DiagramSet(self, self._manager.true, 1)

    def where(self, variable: str) -> DiagramSet:
        """The worlds at which the variable is true."""
        return self.bounded(self._variables[variable])

    def bounded(self, root: Node) -> DiagramSet:
        """The set of a diagram. Raises BoundExceeded (nodes) if the diagram is too large."""
        nodes = len(root)
        if nodes > self._nodes_max:
            raise BoundExceeded("nodes", self._nodes_max)
        return DiagramSet(self, root, nodes)

    def both(self, left: DiagramSet, right: DiagramSet) -> DiagramSet:
        """The intersection. Raises BoundExceeded (nodes)."""
        if left.nodes * right.nodes > NODE_PAIRS_MAX:
            raise BoundExceeded("nodes", self._nodes_max)
        return self.bounded(self._manager.both(left.root, right.root))

    def spread(self, root: Node, visible: tuple[str, ...]) -> DiagramSet:
        """The set with every variable that is not visible projected away."""
        return self.bounded(self._manager.project(self._hidden_cube(visible), root))

    def is_true(self, root: Node) -> bool:
        """Whether the diagram is the one of all worlds."""
        return root == self._manager.true

    def _hidden_cube(self, visible: tuple[str, ...]) -> Node:
        """The conjunction of all variables but the visible ones, extended as some are added."""
        covered, cube = self._hidden.get(visible, (0, self._manager.true))
        if covered < len(self._variables):
            seen = set(visible)
            for name in list(self._variables)[covered:]:
                if name not in seen:
                    cube = self._manager.both(self._variables[name], cube)
            self._hidden[visible] = (len(self._variables), cube)
        return cube


@final
class DiagramSet:
    """A world set as the root of a diagram of its space; `nodes` is the size of the diagram."""

    __slots__ = ("_space", "nodes", "root")

    def __init__(self, space: DiagramSpace, root: Node, nodes: int) -> None:
        self._space = space
        self.root = root
        self.nodes = nodes

    def __and__(self, other: DiagramSet, /) -> DiagramSet:
        return self._space.both(self, other)

    def __or__(self, other: DiagramSet, /) -> DiagramSet:
        return ~self._space.both(~self, ~other)

    def __invert__(self) -> DiagramSet:
        return DiagramSet(self._space, ~self.root, self.nodes)

    def is_empty(self) -> bool:
        """Whether there is no world in it."""
        return self._space.is_true(~self.root)

    def spread(self, visible: tuple[str, ...]) -> DiagramSet:
        """Every world that agrees with some world of the set on the visible variables."""
        if self.is_empty() or visible:
            return self._space.spread(self.root, visible)
        return self._space.everything()

    def count(self, variables: Sequence[str]) -> int:
        """How many assignments to these variables the worlds of the set make."""
        every = 1 << len(variables)
        counted: dict[int, int] = {}
        root = self.spread(tuple(variables)).root

        def count_of(node: Node) -> int:
            """Assignments to all the variables; a node's branches do not depend on its own."""
            return every - counted[int(~node)] if node.negated else counted[int(node)]

        pending = [_regular(root)]
        while pending:
            node = pending[-1]
            low, high = node.low, node.high
            if low is None or high is None:
                counted[int(node)] = every
            else:
                ahead = [n for n in (_regular(low), _regular(high)) if int(n) not in counted]
                if ahead:
                    pending.extend(ahead)
                    continue
                counted[int(node)] = (count_of(low) + count_of(high)) // 2
            pending.pop()
        return count_of(root)

    def assignments(self, variables: Sequence[str]) -> list[frozenset[str]]:
        """These assignments, each as the variables it makes true, in the order of their codes."""
        partial = [(self.spread(tuple(variables)).root, frozenset[str]())]
        # Diagrams branch on the newest variable first.
        for name in sorted(variables, key=lambda name: self._space.position(name) or 0)[::-1]:
            position = self._space.position(name)
            partial = [
                (branch, true | {name} if value else true)
                for node, true in partial
                for value, branch in zip((False, True), _branches(node, position), strict=True)
                if not self._space.is_true(~branch)
            ]
        found = [true for _, true in partial]
        return sorted(found, key=lambda true: [name in true for name in variables], reverse=True)


def _regular(node: Node) -> Node:
    return ~node if node.negated else node


def _branches(node: Node, position: int | None) -> tuple[Node, Node]:
    """What is left of a node where the variable at this position is false, and where it is true."""
    low, high = node.low, node.high
    if low is None or high is None or node.var != str(position):
        return node, node
    return (~low, ~high) if node.negated else (low, high)
