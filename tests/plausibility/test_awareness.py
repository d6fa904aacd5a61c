"""Awareness: who has what in mind, since when, and in whose view (Definition A.3)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.engine.plausibility.awareness import Awareness
from processor.engine.plausibility.model import Model
from processor.engine.plausibility.update import Audience, Canonical
from tests.plausibility.drawn import AGENTS, VARIABLES, Raised, awareness_of, raised
from tests.plausibility.said import announce, holds


@dataclass(frozen=True)
class Spoken:
    """A record as far as awareness knows it."""

    turn: int
    audience: Audience


def test_hearers_become_aware() -> None:
    """An expansion reaches the agents it addresses, as far as they hear it."""
    awareness = awareness_of(
        [
            ("p", None, None, 1),
            ("q", None, ("a", "b"), 1),
            ("r", ("a", "c"), ("a", "b"), 1),
        ]
    )
    aware = {name: [a for a in AGENTS if awareness.is_aware(a, name)] for name in "pqrs"}
    assert aware == {"p": ["a", "b", "c"], "q": ["a", "b"], "r": ["a"], "s": []}
    assert awareness.is_aware("newcomer", "p")
    assert [name for name in "pqrs" if awareness.is_everyone_aware(name)] == ["p"]


def test_awareness_is_seen_by_those_who_heard() -> None:
    """In the view of somebody who missed it, nobody became aware."""
    awareness = awareness_of([("p", ("a",), ("a", "b"), 1)])
    assert awareness.is_aware("a", "p", ("b",))
    assert not awareness.is_aware("b", "p", ("a",))
    assert not awareness.is_aware("a", "p", ("c",))
    model = Model(awareness=awareness)
    assert holds(model, "aware_a p & K_b aware_a p & ~K_c aware_a p & K_a ~aware_b p")


def test_records_are_in_mind_once_heard() -> None:
    """Whoever heard a record introduced is aware of its id, without any expansion."""
    records = {"o1": Spoken(1, None), "o2": Spoken(2, ("a", "b"))}
    awareness = Awareness(records)
    assert awareness.is_everyone_aware("o1")
    assert not awareness.is_everyone_aware("o2")
    assert [a for a in AGENTS if awareness.is_aware(a, "o2")] == ["a", "b"]
    assert not awareness.is_aware("a", "o2", ("c",))
    records["o3"] = Spoken(3, None)
    assert awareness.is_aware("c", "o3")
    assert awareness.propositions() == ()


def test_an_entry_is_judged_by_the_awareness_of_its_time() -> None:
    """An announcement about awareness sees what was raised before it, now and in every replay."""
    records: dict[str, Spoken] = {}
    awareness = Awareness(records)
    model = Model(awareness=awareness)
    awareness.expand("early", None, None, 1)
    model.append(announce("~aware_a late | p", "o1", turn=2, at_once=True))
    model.append(announce("~aware_a o9 | q", "o2", turn=2))
    awareness.expand("late", None, None, 2)
    records["o9"] = Spoken(2, None)
    assert holds(model, "aware_a early & aware_a late & aware_a o9")
    assert not holds(model, "p"), "late was not raised before the turn"
    assert not holds(model, "q"), "nor was the record of the turn itself"
    model.append(announce("aware_a late -> r", "o3", turn=2))
    assert holds(model, "r"), "an entry after the observations sees the expansions of its turn"
    model.append(announce("aware_a o9 -> s", "o4", turn=3, at_once=True))
    assert holds(model, "s")
    assert not holds(model, "p | q"), "and the first two are still judged as they were then"


def test_late_expansions_reach_answers_already_given() -> None:
    """What a turn brings to mind after an entry was evaluated still counts for that entry."""
    awareness = Awareness()
    model = Model(awareness=awareness)
    model.append(announce("aware_a p -> q", "o1", turn=1))
    assert not holds(model, "q")
    mark = awareness.mark()
    awareness.expand("p", None, None, 1)
    assert holds(model, "q")
    awareness.rollback(mark)
    assert not holds(model, "q")


@settings(max_examples=60)
@given(raised, raised)
def test_awareness_survives_storage_and_rollback(before: list[Raised], after: list[Raised]) -> None:
    """Stored parts give the same awareness, and a rollback gives the one before."""
    awareness = awareness_of(before)
    stored = [awareness.canonical(name) for name in awareness.propositions()]
    again = Awareness()
    for part in stored:
        again.restore(part)
    assert [again.canonical(name) for name in again.propositions()] == stored
    mark = awareness.mark()
    for expansion in after:
        awareness.expand(*expansion)
    awareness.rollback(mark)
    assert [awareness.canonical(name) for name in awareness.propositions()] == stored


@settings(max_examples=60)
@given(raised)
def test_what_is_covered_is_not_stored(expansions: list[Raised]) -> None:
    """Leaving out what earlier expansions cover changes nobody's awareness."""
    awareness = awareness_of(expansions)
    for agent in AGENTS:
        for name in VARIABLES:
            expected = any(
                proposition == name
                and (agents is None or agent in agents)
                and (audience is None or agent in audience)
                for proposition, agents, audience, _ in expansions
            )
            assert awareness.is_aware(agent, name) is expected


@given(st.integers(0, 5))
def test_saying_it_again_adds_nothing(times: int) -> None:
    """The same expansion is stored once, however often it is made."""
    awareness = Awareness()
    for turn in range(times + 1):
        awareness.expand("p", None, None, turn)
        awareness.expand("p", ("a",), ("a", "b"), turn)
    assert awareness.canonical("p") == ["p", [[0, None, None]]]


@pytest.mark.parametrize("stored", [[], ["p"], ["p", [1]], ["p", [[1, "a", None]]], [1, []]])
def test_other_lists_are_no_awareness(stored: list[Canonical]) -> None:
    """A list that `canonical` cannot have made is a ValueError."""
    with pytest.raises(ValueError, match=r"."):
        Awareness().restore(stored)
