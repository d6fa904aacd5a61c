"""Sets of possible worlds as binary decision diagrams.

The variable order is the order in which variables were added, the newest on top, and never changes:
diagrams grow at the top while the log grows, and the size of a set is a function of the set and
that order alone. A result of more than `bounds.nodes` nodes raises BoundExceeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

from processor.engine.plausibility.bounds import BoundExceeded, Bounds
from processor.engine.plausibility.manager import Manager, Node, open_manager

NODE_PAIRS_MAX = 4_000_000
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
        return DiagramSet(self, self._manager.true, 1, EVERYTHING)

    def where(self, variable: str) -> DiagramSet:
        """The worlds at which the variable is true."""
        signs = Signs(true=1 << self._positions[variable], false=0, exact=True)
        return self.bounded(self._variables[variable], signs)

    def bounded(self, root: Node, signs: Signs) -> DiagramSet:
        """The set of a diagram. Raises BoundExceeded (nodes) if the diagram is too large."""
        nodes = self._manager.size(root)
        if nodes > self._nodes_max:
            raise BoundExceeded("nodes", self._nodes_max)
        return DiagramSet(self, root, nodes, NOTHING if self.is_true(~root) else signs)

    def both(self, left: DiagramSet, right: DiagramSet, signs: Signs) -> DiagramSet:
        """The intersection. Raises BoundExceeded (nodes)."""
        if left.nodes * right.nodes > NODE_PAIRS_MAX:
            raise BoundExceeded("nodes", self._nodes_max)
        return self.bounded(self._manager.both(left.root, right.root), signs)

    def spread(self, worlds: DiagramSet, visible: tuple[str, ...]) -> DiagramSet:
        """The set with every variable that is not visible projected away."""
        seen = sum(1 << self._positions[name] for name in visible if name in self._positions)
        true, false, exact = worlds.signs
        signs = Signs(true & seen, false & seen, exact)
        return self.bounded(self._manager.project(self._hidden_cube(visible), worlds.root), signs)

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
class Signs(NamedTuple):
    """Variables that have one value in all worlds of a set, as bits by position.

    They are those that came together while the set was made; there may be more. `exact` says that
    the set is all worlds with these values.
    """

    true: int
    false: int
    exact: bool

    def implies(self, other: Signs) -> bool:
        """Whether worlds with these values are all in the set that has the other signs."""
        return other.exact and not (other.true & ~self.true or other.false & ~self.false)


EVERYTHING = Signs(true=0, false=0, exact=True)
NOTHING = Signs(true=0, false=0, exact=False)


@final
class DiagramSet:
    """A world set as the root of a diagram of its space; `nodes` is the size of the diagram.

    Most sets of a long log are made of literals, so their signs are kept: they tell at once that
    two sets have nothing in common, or that one includes the other.
    """

    __slots__ = ("_space", "nodes", "root", "signs")

    def __init__(self, space: DiagramSpace, root: Node, nodes: int, signs: Signs) -> None:
        self._space = space
        self.root = root
        self.nodes = nodes
        self.signs = signs

    def pairs_with(self, other: DiagramSet, /) -> int:
        """What an intersection may cost; nothing where the signs tell what it is."""
        ours, theirs = self.signs, other.signs
        if ours.implies(theirs) or theirs.implies(ours):
            return 0
        contradicts = (ours.true | theirs.true) & (ours.false | theirs.false)
        return 0 if contradicts else self.nodes * other.nodes

    def __and__(self, other: DiagramSet, /) -> DiagramSet:
        ours, theirs = self.signs, other.signs
        if ours.implies(theirs) or self.is_empty():
            return self
        if theirs.implies(ours) or other.is_empty():
            return other
        true, false = ours.true | theirs.true, ours.false | theirs.false
        if true & false:
            return ~self._space.everything()
        return self._space.both(self, other, Signs(true, false, ours.exact and theirs.exact))

    def __or__(self, other: DiagramSet, /) -> DiagramSet:
        if self.is_empty():
            return other
        if other.is_empty():
            return self
        ours, theirs = self.signs, other.signs
        neither = self._space.both(~self, ~other, NOTHING)
        signs = Signs(ours.true & theirs.true, ours.false & theirs.false, exact=False)
        return DiagramSet(self._space, ~neither.root, neither.nodes, signs)

    def __invert__(self) -> DiagramSet:
        true, false, exact = self.signs
        is_literal = exact and (true | false).bit_count() == 1
        signs = Signs(false, true, exact=True) if is_literal else NOTHING
        if self.is_empty():
            signs = EVERYTHING
        return DiagramSet(self._space, ~self.root, self.nodes, signs)

    def is_empty(self) -> bool:
        """Whether there is no world in it."""
        return self.nodes == 1 and self._space.is_true(~self.root)

    def decides(self, positions: int) -> bool:
        """Whether all its worlds are known to agree on the variables at these positions."""
        return not positions & ~(self.signs.true | self.signs.false)

    def spread_pairs(self, visible: tuple[str, ...]) -> int:
        """What `spread` may cost: hiding a variable joins the two branches below it."""
        return self.nodes * self.nodes if visible else 0

    def spread(self, visible: tuple[str, ...]) -> DiagramSet:
        """Every world that agrees with some world of the set on the visible variables."""
        if self.is_empty():
            return self
        return self._space.spread(self, visible) if visible else self._space.everything()

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
