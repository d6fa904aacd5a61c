"""Bounds: what stops a question, and that it depends on nothing but the log and the question."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.engine.plausibility.bounds import BoundExceeded, Bounds, Meter
from processor.engine.plausibility.formula import And, Atom, Formula, Not, Or
from processor.engine.plausibility.model import Model
from processor.engine.plausibility.syntax import parse
from processor.engine.plausibility.update import Update, UpdateKind
from tests.plausibility.drawn import fill, literals
from tests.plausibility.said import announce, conservative, radical, variable


def _pairs(count: int) -> Formula:
    """A formula whose diagram doubles with each pair, in the order of its variables."""
    left = Or((Atom("x0"), *(Not(Atom(f"x{number}")) for number in range(1, count))))
    pairs = [Or((Atom(f"x{number}"), Atom(f"y{number}"))) for number in range(count)]
    return And((left, *pairs))


def _outcome(ask: Callable[[Formula], bool], formula: Formula) -> bool | str:
    try:
        return ask(formula)
    except BoundExceeded as exceeded:
        return exceeded.bound


def test_too_many_variables() -> None:
    """The variables of the log and of the question count together."""
    model = Model(Bounds(variables=20))
    for number in range(10):
        model.append(announce(f"x{2 * number} | x{2 * number + 1}", "o"))
    assert model.possible(parse("x0 & x19"))
    with pytest.raises(BoundExceeded, match="more than 20 variables") as caught:
        model.possible(parse("x0 & y"))
    assert caught.value.bound == "variables"
    assert model.possible(parse("x0 & x19")), "other questions are still answered"


def test_variables_that_do_not_matter_do_not_count() -> None:
    """Bare records do not use up the variables, until they are asked about."""
    model = Model(Bounds(variables=20))
    for number in range(1_000):
        model.append(announce(f"o{number}", f"o{number}"))
        model.append(radical(f"h{number}", f"h{number}"))
    assert model.believes("a", parse("o1 & h999"))


def test_explicit_sets_take_sixteen_variables() -> None:
    """With explicit sets alone the seventeenth variable is a bound."""
    model = Model(engine="explicit")
    assert model.possible(And(tuple(Atom(f"x{number}") for number in range(16))))
    with pytest.raises(BoundExceeded, match="more than 16 variables"):
        model.possible(And(tuple(Atom(f"x{number}") for number in range(17))))


def test_a_formula_whose_diagram_explodes() -> None:
    """A question too large for its diagram is refused, and the next one is answered."""
    model = Model(Bounds(nodes=5_000))
    model.append(announce("p", "o"))
    with pytest.raises(BoundExceeded, match="more than 5000 nodes"):
        model.possible(_pairs(40))
    assert model.holds(parse("p"))
    assert model.possible(_pairs(8))


def test_an_entry_whose_diagram_explodes_is_given_up_with_its_record() -> None:
    """A log that is too large is refused until what makes it so is contracted."""
    model = Model(Bounds(nodes=5_000))
    model.append(announce("p", "o1"))
    model.append(Update(2, UpdateKind.ANNOUNCEMENT, _pairs(40), ("o2",)))
    for _ in range(2):
        with pytest.raises(BoundExceeded, match="nodes"):
            model.holds(parse("p"))
    model.contract("o2")
    assert model.holds(parse("p"))


def test_common_knowledge_over_a_long_path_is_stopped() -> None:
    """A group whose cells form a path of exponential length is a bound, not a stall."""
    digits = range(16)
    model = Model(Bounds(steps=2_000, nodes=500_000))
    for agent, letter in (("a", "x"), ("b", "y")):
        seen = tuple(sorted(f"{letter}{digit}" for digit in digits))
        model.append(Update(0, UpdateKind.OBSERVES, agent=agent, variables=seen))
    same = " & ".join(f"(x{digit} <-> y{digit})" for digit in digits)
    carry = "true"
    successor = []
    for digit in digits:
        successor.append(f"(y{digit} <-> ~(x{digit} <-> c{digit}))")
        successor.append(f"(c{digit} <-> {carry})")
        carry = f"(c{digit} & x{digit})"
    model.append(announce(f"({same}) | {' & '.join(successor)}", "o"))
    with pytest.raises(BoundExceeded, match="more than 2000 steps"):
        model.holds(parse("C[a, b] ~(" + " & ".join(f"x{digit}" for digit in digits) + ")"))


def test_beliefs_that_take_too_long_are_stopped() -> None:
    """Going through a long list of upgrades again and again is a bound, not a stall."""
    model = Model(Bounds(steps=1_000))
    for number in range(120):
        model.append(radical(f"h{number} | x{number}", "h"))
        model.append(conservative(f"~(h{number} | x{number})", "e"))
        model.append(conservative(f"h{number} & ~x{number}", "e"))
    with pytest.raises(BoundExceeded, match="steps"):
        model.believes("a", parse("h3"))


def test_a_listing_has_a_length() -> None:
    """Worlds are counted exactly whatever their number, and listed up to a bound."""
    model = Model(Bounds(worlds=100))
    for number in range(70):
        model.append(variable(f"x{number}"))
    model.append(announce("x0 | x1", "o"))
    assert model.world_count() == 3 * 2**68
    with pytest.raises(BoundExceeded, match="more than 100 worlds"):
        model.worlds()
    model.append(announce(" & ".join(f"x{number}" for number in range(65)), "o"))
    assert model.world_count() == len(model.worlds()) == 32


def test_nothing_declared_is_one_world() -> None:
    """Without declared variables there is one world to tell, the empty one."""
    model = Model()
    model.append(announce("p | q", "o"))
    assert model.world_count() == 1
    assert model.worlds() == [frozenset()]


def test_a_meter_stops_beyond_its_limit() -> None:
    """A meter lets its limit be spent, and not more; large results cost more steps."""
    meter = Meter(limit=3)
    meter.spend(nodes=512)
    meter.spend()
    for _ in range(2):
        with pytest.raises(BoundExceeded):
            meter.spend()
    meter = Meter(limit=3)
    meter.spend(pairs=2 * 4_096)
    with pytest.raises(BoundExceeded):
        meter.spend()


_NAMES = [f"{letter}{number}" for letter in "xyz" for number in range(7)]
_atoms = st.sampled_from(_NAMES).map(Atom)
_clauses = st.lists(st.one_of(_atoms, _atoms.map(Not)), min_size=2, max_size=3).map(
    lambda parts: Or(tuple(parts))
)
_kinds = st.sampled_from([UpdateKind.ANNOUNCEMENT, UpdateKind.RADICAL, UpdateKind.CONSERVATIVE])
_entries = st.builds(
    Update, st.just(1), _kinds, st.one_of(_clauses, _clauses, literals), st.just(("o",))
)
TIGHT = Bounds(variables=16, nodes=14, steps=80)


@settings(max_examples=40)
@given(
    st.lists(_entries, min_size=4, max_size=25),
    st.lists(_clauses, min_size=1, max_size=3),
    st.lists(_clauses, max_size=6),
)
def test_a_bound_is_a_function_of_log_and_question(
    log: list[Update], asked: list[Formula], asked_before: list[Formula]
) -> None:
    """A model asked all along runs into the same bounds as one that is asked for the first time."""
    for bounds in (TIGHT, Bounds(nodes=12), Bounds(steps=30)):
        warm = Model(bounds, engine="diagrams")
        for place, update in enumerate(log):
            warm.append(update)
            if asked_before:
                question = asked_before[place % len(asked_before)]
                _outcome(lambda formula: warm.believes("a", formula), question)  # noqa: B023
                mark = warm.mark()
                warm.append(Update(2, UpdateKind.RADICAL, question))
                _outcome(warm.possible, question)
                warm.rollback(mark)
        for formula in asked:
            cold = fill(Model(bounds, engine="diagrams"), log)
            expected = _outcome(lambda f: cold.believes("a", f), formula)  # noqa: B023
            assert _outcome(lambda f: warm.believes("a", f), formula) == expected  # noqa: B023
            cold = fill(Model(bounds, engine="diagrams"), log)
            assert _outcome(warm.possible, formula) == _outcome(cold.possible, formula)
