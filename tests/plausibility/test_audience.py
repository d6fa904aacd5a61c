"""Private utterances: who knows what, and what the others believe to be so."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.engine.plausibility.bounds import (
    BoundExceeded,
    Bounds,
    CommonKnowledgeUndefined,
    Meter,
)
from processor.engine.plausibility.formula import Atom, Knows
from processor.engine.plausibility.model import Model
from processor.engine.plausibility.perspective import (
    EVERYONE_ONLY,
    Perspective,
    View,
    closure,
    keeps,
    seen_by,
    visited,
)
from processor.engine.plausibility.syntax import parse
from processor.engine.plausibility.update import Audience
from tests.plausibility.drawn import AGENTS, audiences, formulas
from tests.plausibility.said import announce, conservative, holds, model_of, radical, variable

AB = ("a", "b")


def test_who_hears_knows_and_the_others_believe_nothing_happened() -> None:
    """The audience knows, knows that it knows, and knows that the others do not."""
    model = model_of(announce("p", "o", AB))
    assert holds(model, "p & K_a p & K_b p & K_a K_b p & K_b K_a p")
    assert holds(model, "~K_c p & K_a ~K_c p")
    assert holds(model, "~K_c K_a p")
    assert holds(model, "K_c ~K_a p"), "c is wrong, but in its view nothing happened"
    assert holds(model, "K_c (K_a p -> p)")


def test_upgrades_are_heard_too() -> None:
    """Beliefs move for the audience alone."""
    model = model_of(radical("p", "h1", AB), conservative("q", "h2", ("a",)))
    assert holds(model, "B_a (p & q) & B_b p & B_a B_b p")
    assert not holds(model, "B_b q")
    assert not holds(model, "B_c p")
    assert holds(model, "B_a ~B_b q")


def test_one_more_private_word_splits_the_group() -> None:
    """What a hears without b is not in b's view of a."""
    model = model_of(announce("p", "o1", AB), announce("q", "o2", ("a",)))
    assert holds(model, "K_a q & ~K_b q & ~K_b K_a q & K_a ~K_b q")
    assert holds(model, "K_b K_a p")


def test_everyone_includes_those_who_come_later() -> None:
    """An utterance without an audience is heard by agents nobody had mentioned."""
    assert holds(model_of(announce("p")), "K_newcomer p & C[a, newcomer] p")


def test_common_knowledge_is_refused_where_somebody_missed_something() -> None:
    """C_G is answered in views that all of G share, and refused in others by name."""
    model = model_of(announce("p", "o1"), announce("q", "o2", AB))
    assert holds(model, "C[a, b] (p & q)")
    with pytest.raises(CommonKnowledgeUndefined, match="of a, c") as caught:
        holds(model, "C[a, c] p")
    assert caught.value.agents == ("a", "c")
    assert holds(model, "K_c C[a, b, c] p"), "in the view of c nothing else was said"
    assert not holds(model, "K_c C[a, b] q")


def test_a_declaration_in_private_counts_as_heard() -> None:
    """Even an entry that changes no world set keeps those apart who missed it."""
    model = model_of(announce("p"), variable("m", AB))
    with pytest.raises(CommonKnowledgeUndefined):
        holds(model, "C[a, c] p")


def test_common_knowledge_in_the_log_looks_at_what_came_before() -> None:
    """An announcement of common knowledge stays what it was when somebody misses a later one."""
    model = model_of(announce("p", "o1"), announce("C[a, b, c] p -> q", "o2"))
    assert holds(model, "K_c q")
    model.append(announce("r", "o3", AB))
    assert holds(model, "K_c q & K_a (q & r)")
    assert holds(model_of(*model.updates()), "K_c q & K_a (q & r)")


def test_common_knowledge_in_a_private_turn_looks_at_what_came_before_the_turn() -> None:
    """Of two announcements made at once in private, neither counts as missed for the other."""
    model = model_of(
        announce("p", "o1"),
        announce("o2", "o2", AB, turn=2, at_once=True),
        announce("C[a, b, c] p -> q", "o3", AB, turn=2, at_once=True),
    )
    assert holds(model, "K_a q & ~K_c q")


@pytest.mark.parametrize("questions", [("q", "K_c q"), ("K_c q", "q")])
def test_a_missed_record_without_content_keeps_views_apart(questions: tuple[str, str]) -> None:
    """Where c missed a bare record C is undefined, and in the view of c it is not."""
    model = model_of(announce("o1", "o1", AB), announce("C[a, c] r | q", "o2"))
    answers = {question: holds(model, question) for question in questions}
    assert answers == {"q": False, "K_c q": True}


def test_an_entry_is_passed_over_where_it_cannot_be() -> None:
    """An announcement that is false in somebody's whole view leaves that view as it was."""
    model = model_of(announce("p", "o1", ("a",)), announce("K_a p", "o2"))
    assert holds(model, "K_a p & ~K_b p & ~K_b K_a p")
    assert model.world_count() == 1
    undefined = model_of(announce("r", "o1", AB), announce("C[a, c] r | q", "o2"))
    assert not holds(undefined, "q")
    assert holds(undefined, "r & K_a r")


@given(st.lists(audiences, max_size=5), st.sets(st.sampled_from(AGENTS)), st.sampled_from(AGENTS))
def test_a_perspective_is_what_a_set_of_agents_heard(
    heard: list[Audience], group: set[str], agent: str
) -> None:
    """Moving from agent to agent keeps exactly the audiences that contain all of them."""
    private = frozenset(audience for audience in heard if audience is not None)
    here: Perspective = private
    for member in sorted(group):
        here = seen_by(here, member)
    for audience in heard:
        contains = audience is None or group <= set(audience)
        assert keeps(here, audience) is contains
    assert seen_by(seen_by(here, agent), agent) == seen_by(here, agent)


@settings(max_examples=60)
@given(st.lists(st.tuples(audiences, formulas), max_size=4))
def test_the_closure_is_closed(said: list[tuple[Audience, object]]) -> None:
    """Evaluating any kept formula in any needed perspective needs no further perspective."""
    log = [(audience, formula) for audience, formula in said]
    private = frozenset(audience for audience, _ in said if audience is not None)
    asked = parse("B_a K_b p")
    needed, beliefs = closure(asked, private, log, 1_000, Meter(10**6))
    spoken = [
        (here, formula) for here in needed for audience, formula in log if keeps(here, audience)
    ]
    for here, formula in [(private, asked), *spoken]:
        for view in visited(formula, here):
            assert view.perspective in needed
            assert view.believer is None or view in beliefs


def test_too_many_views_are_a_bound() -> None:
    """A log that needs more perspectives than allowed is refused, not replayed for ever."""
    agents = [f"a{number}" for number in range(12)]
    model = Model(Bounds(perspectives=50))
    for left_out in agents:
        audience = tuple(sorted(agent for agent in agents if agent != left_out))
        model.append(announce(f"K_{left_out} p | ~K_{left_out} p", "o", audience))
        model.append(announce(f"~K_{left_out} q", "o"))
    with pytest.raises(BoundExceeded, match="more than 50 perspectives"):
        model.holds(Knows("a1", Atom("p")))


def test_only_what_all_heard_is_left_for_strangers() -> None:
    """The view of somebody who heard nothing in private is the one of everyone."""
    private = frozenset({("a", "b"), ("a",)})
    assert seen_by(private, "z") == EVERYONE_ONLY
    assert set(visited(parse("K_z K_a p"), private)) == {View(EVERYONE_ONLY)}
