"""World sets: the explicit ones, and both libraries of decision diagrams, against plain sets."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.engine.plausibility import libraries
from processor.engine.plausibility.bounds import BoundExceeded, Bounds
from processor.engine.plausibility.diagrams import DiagramSpace
from processor.engine.plausibility.libraries import CuddManager, PythonManager
from processor.engine.plausibility.worlds import ExplicitSpace, WorldSet, WorldSpace

NAMES = ("p", "q", "r", "s")
EVERY = [frozenset(each) for size in range(5) for each in combinations(NAMES, size)]
SMALL = Bounds(variables=64, nodes=1_000)

SPACES: dict[str, Callable[[], WorldSpace]] = {
    "explicit": ExplicitSpace,
    "cudd": lambda: DiagramSpace(SMALL, CuddManager(SMALL)),
    "python": lambda: DiagramSpace(SMALL, PythonManager(SMALL)),
}
each_space = pytest.mark.parametrize("new_space", SPACES.values(), ids=SPACES)

Plain = frozenset[frozenset[str]]
Plan = list[tuple[str, int, int, tuple[str, ...]]]
plans: st.SearchStrategy[Plan] = st.lists(
    st.tuples(
        st.sampled_from(["and", "or", "not", "spread", "grow"]),
        st.integers(0, 30),
        st.integers(0, 30),
        st.lists(st.sampled_from(NAMES), unique=True).map(lambda each: tuple(sorted(each))),
    ),
    max_size=14,
)


def _spread(worlds: Plain, visible: tuple[str, ...]) -> Plain:
    seen = frozenset(visible)
    met = {world & seen for world in worlds}
    return frozenset(world for world in EVERY if world & seen in met)


def _carry_out(plan: Plan, space: WorldSpace) -> list[tuple[WorldSet, Plain]]:
    """Sets made step by step of earlier ones, next to what they should hold."""
    everything = frozenset(EVERY)
    made = [(space.everything(), everything)]
    for operation, one, other, visible in plan:
        (left, plain_left), (right, plain_right) = made[one % len(made)], made[other % len(made)]
        match operation:
            case "and":
                made.append((left & right, plain_left & plain_right))
            case "or":
                made.append((left | right, plain_left | plain_right))
            case "not":
                made.append((~left, everything - plain_left))
            case "spread":
                made.append((left.spread(visible), _spread(plain_left, visible)))
            case _:
                name = NAMES[one % len(NAMES)]
                if space.position(name) is None:
                    space.add(name)
                made.append((space.where(name), frozenset(w for w in EVERY if name in w)))
    return made


@each_space
@settings(max_examples=80)
@given(plan=plans)
def test_sets_are_sets(new_space: Callable[[], WorldSpace], plan: Plan) -> None:
    """Every operation gives the set it should, also while variables are still being added."""
    space = new_space()
    made = _carry_out(plan, space)
    for name in NAMES:
        if space.position(name) is None:
            space.add(name)
    order = sorted(EVERY, key=lambda world: [name in world for name in NAMES], reverse=True)
    for worlds, plain in made:
        assert worlds.is_empty() is (not plain)
        assert worlds.count(NAMES) == len(plain)
        assert worlds.assignments(NAMES) == [world for world in order if world in plain]
        some = ("s", "p")
        assert worlds.count(some) == len({world & set(some) for world in plain})
        assert set(worlds.assignments(some)) == {world & set(some) for world in plain}


@each_space
@settings(max_examples=80)
@given(plan=plans)
def test_what_a_set_decides_is_decided(new_space: Callable[[], WorldSpace], plan: Plan) -> None:
    """Where a set is known to decide variables, all its worlds do agree on them."""
    space = new_space()
    for name in NAMES:
        space.add(name)
    for worlds, plain in _carry_out(plan, space):
        for position, name in enumerate(NAMES):
            if worlds.decides(1 << position):
                assert len({name in world for world in plain}) <= 1


def test_the_libraries_draw_the_same_diagrams() -> None:
    """CUDD and the pure library agree on the size of every diagram, so their bounds agree too."""
    sizes = []
    for new_space in (SPACES["cudd"], SPACES["python"]):
        space = new_space()
        for number in range(20):
            space.add(f"x{number}")
        worlds = space.everything()
        seen = []
        for number in range(0, 20, 2):
            either = space.where(f"x{number}") | space.where(f"x{(7 * number + 3) % 20}")
            worlds = worlds & either
            seen.append(worlds.nodes)
        sizes.append(seen)
    assert sizes[0] == sizes[1]


def test_a_large_diagram_is_refused() -> None:
    """A set with more nodes than the bound is refused, whichever operation would make it."""
    space = DiagramSpace(SMALL)
    for number in range(30):
        space.add(f"x{number}")
    made = [space.everything()]

    def grow() -> None:
        for number in range(15):
            either = space.where(f"x{number}") | space.where(f"x{number + 15}")
            made.append(made[-1] & either)

    with pytest.raises(BoundExceeded, match="more than 1000 nodes") as caught:
        grow()
    assert caught.value.bound == "nodes"
    names = [f"x{number}" for number in range(30)]
    assert made[-1].count(names) == 3 ** (len(made) - 1) * 4 ** (16 - len(made))


def test_memory_runs_out_as_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation that would take more memory than allowed is stopped on its way."""
    monkeypatch.setattr(libraries, "BYTES_MIN", 16 * 2**20)
    bounds = Bounds(variables=128, nodes=1)
    cudd = CuddManager(bounds)
    left = [cudd.add_variable() for _ in range(60)]
    right = [cudd.add_variable() for _ in range(60)]

    def grow() -> None:
        root = cudd.true
        for one, other in zip(left, right, strict=True):
            root = cudd.both(root, ~cudd.both(~one, ~other))

    with pytest.raises(BoundExceeded, match="nodes"):
        grow()
    assert len(cudd.both(left[0], right[0])) == 3, "the manager is still good"


@each_space
def test_one_diagram_in_deep_orders(new_space: Callable[[], WorldSpace]) -> None:
    """The stack of the interpreter is as it was after sets over many variables were made."""
    before = sys.getrecursionlimit()
    space = new_space()
    worlds = space.everything()
    for number in range(space.capacity):
        space.add(f"x{number}")
        worlds = worlds & space.where(f"x{number}")
    assert worlds.count(["x0", "x1"]) == 1
    assert (worlds & ~space.where("x0")).is_empty()
    assert sys.getrecursionlimit() == before


def test_the_pure_library_takes_deep_diagrams() -> None:
    """A diagram deeper than the interpreter's usual stack is no error."""
    bounds = Bounds(variables=1_500)
    space = DiagramSpace(bounds, PythonManager(bounds))
    worlds = space.everything()
    for number in range(1_500):
        space.add(f"x{number}")
        worlds = worlds & space.where(f"x{number}")
    either = space.where("x0") | ~space.where("x1")
    assert (worlds & ~either).is_empty()


def test_there_is_no_seventeenth_explicit_variable() -> None:
    """Bit arrays stop at sixteen variables."""
    space = ExplicitSpace()
    for number in range(space.capacity):
        space.add(f"x{number}")
    with pytest.raises(AssertionError, match="too many"):
        space.add("one more")
