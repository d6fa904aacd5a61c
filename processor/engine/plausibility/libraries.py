"""The decision-diagram library behind the world sets: CUDD where it is available, else pure Python.

Both keep the variable order fixed, newest on top, and give the same diagrams. CUDD also limits its
memory, so that one operation cannot run away; the pure one has no such limit and is much slower.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import Literal, TypeAlias, final

from dd import autoref, bdd

from processor.engine.plausibility.bounds import Bounds, OutOfMemory
from processor.engine.plausibility.manager import Manager, Node

try:
    from dd import cudd
except ImportError:  # dd was installed without its CUDD build
    cudd = None

BYTES_PER_NODE = 1_280
"""Memory for each node of the bound: all sets of a log together may be 32 times as large as one."""
BYTES_MIN = 64 * 2**20
CACHE_ENTRIES_MIN = 2**12
CACHE_ENTRIES_MAX = 2**20

Operator: TypeAlias = Literal["and", "\\E"]
"""What `dd` calls conjunction, and projection with the variables as the left operand."""


def best_manager(bounds: Bounds) -> Manager:
    """A new manager of CUDD, or of the pure Python library where that is all there is."""
    return PythonManager(bounds) if cudd is None else CuddManager(bounds)


# A CUDD manager must outlive its diagrams, or it complains and leaks them. When a conversation is
# collected as part of a reference cycle, Python frees the two in any order. So each manager is kept
# here until its owner is gone and no diagram of it is left.
_owned: dict[int, Sized] = {}
_orphaned: list[Sized] = []


def _keep_until_unused(owner: object, manager: Sized) -> None:
    """Hold on to a manager beyond its owner; let go of those that are not used any more."""
    _owned[id(manager)] = manager
    weakref.finalize(owner, _orphan, id(manager)).atexit = False
    _orphaned[:] = [orphan for orphan in _orphaned if len(orphan) > 0]


def _orphan(key: int) -> None:
    _orphaned.append(_owned.pop(key))


@final
class CuddManager:
    """CUDD through `dd`, without reordering and within a memory limit."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        bytes_max = max(BYTES_MIN, BYTES_PER_NODE * bounds.nodes)
        self._bdd = cudd.BDD(memory_estimate=bytes_max, initial_cache_size=CACHE_ENTRIES_MIN)
        self._bdd.configure(
            reordering=False, max_memory=bytes_max, max_cache_hard=CACHE_ENTRIES_MAX
        )
        _keep_until_unused(self, self._bdd)
        self._count = 0
        self.true: Node = self._bdd.true

    def add_variable(self) -> Node:
        """A new variable on top of all others."""
        name = str(self._count)
        self._bdd.insert_var(name, 0)
        self._count += 1
        variable: Node = self._bdd.var(name)
        return variable

    def size(self, root: Node) -> int:
        """How many nodes the diagram has."""
        return len(root)

    def both(self, left: Node, right: Node) -> Node:
        """Conjunction. Raises BoundExceeded (nodes)."""
        return self._apply("and", left, right)

    def project(self, cube: Node, root: Node) -> Node:
        """The root without the variables of the cube. Raises BoundExceeded (nodes)."""
        return self._apply("\\E", cube, root)

    def _apply(self, operator: Operator, left: Node, right: Node) -> Node:
        try:
            result: Node = self._bdd.apply(operator, left, right)
        except RuntimeError as out_of_memory:
            raise OutOfMemory("nodes", self._bounds.nodes) from out_of_memory
        return result


class _NodesWithoutCheck(bdd.BDD):
    """Plain memory, which Python frees in any order with the diagrams of a reference cycle.

    The library would take diagrams that are still there for a fault, and print a traceback.
    """

    def __del__(self) -> None:
        """Nothing is left to do."""


class _PythonDiagrams(autoref.BDD):
    """The manager of `dd`, over nodes without that check."""

    def __init__(self) -> None:
        self._bdd = _NodesWithoutCheck()  # type: ignore[abstract]  # as in the library
        self.vars = self._bdd.vars


@final
class PythonManager:
    """The pure Python library of `dd`. It recurses once per level, so the stack is let grow."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._bdd = _PythonDiagrams()
        self._bdd.configure(reordering=False)
        # Variables can only be declared from the top down, so all places are taken beforehand.
        self._bdd.declare(*(str(number) for number in reversed(range(bounds.variables))))
        self._count = 0
        self.true: Node = self._bdd.true

    def add_variable(self) -> Node:
        """A new variable on top of all others."""
        variable = self._bdd.var(str(self._count))
        self._count += 1
        return variable

    def size(self, root: Node) -> int:
        """How many nodes the diagram has."""
        with _stack_for(self._count):
            return len(root)

    def both(self, left: Node, right: Node) -> Node:
        """Conjunction."""
        return self._apply("and", left, right)

    def project(self, cube: Node, root: Node) -> Node:
        """The root without the variables of the cube."""
        return self._apply("\\E", cube, root)

    def _apply(self, operator: Operator, left: Node, right: Node) -> Node:
        if len(self._bdd) > 4 * self._bounds.nodes:
            self._bdd.collect_garbage()
        assert isinstance(left, autoref.Function)
        assert isinstance(right, autoref.Function)
        with _stack_for(self._count):
            return self._bdd.apply(operator, left, right)


@contextmanager
def _stack_for(levels: int) -> Iterator[None]:
    """Let the interpreter recurse deep enough for diagrams of so many levels."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 1_000 + 8 * levels))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
