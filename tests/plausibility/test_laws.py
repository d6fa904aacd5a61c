"""What knowledge, belief and their updates obey, and what they do not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings

from processor.engine.plausibility.awareness import Awareness
from processor.engine.plausibility.bounds import CommonKnowledgeUndefined
from processor.engine.plausibility.formula import (
    And,
    Atom,
    Aware,
    Believes,
    Common,
    Constant,
    Explicit,
    Formula,
    Iff,
    Implies,
    Knows,
    Not,
)
from processor.engine.plausibility.model import Model
from processor.engine.plausibility.syntax import parse
from processor.engine.plausibility.update import Update, UpdateKind
from tests.plausibility.drawn import (
    AGENTS,
    Raised,
    awareness_of,
    fill,
    formulas,
    literals,
    logs,
    plain_formulas,
    raised,
)
from tests.plausibility.said import (
    announce,
    conservative,
    holds,
    model_of,
    radical,
    sees,
)

A, B = AGENTS[:2]
plain_logs = logs(plain_formulas)


def _public(log: Sequence[Update]) -> list[Update]:
    """The same updates, said to everyone."""
    return [
        Update(
            update.turn,
            update.kind,
            update.formula,
            update.tags,
            None,
            update.simultaneous,
            update.agent,
            update.variables,
        )
        for update in log
    ]


@settings(max_examples=40)
@given(logs(), formulas, formulas)
def test_public_knowledge_is_s5(log: list[Update], p: Formula, q: Formula) -> None:
    """Of what everyone hears, knowledge is true, closed under implication, and introspective."""
    model = fill(Model(), _public(log))
    know_p, know_q = Knows(A, p), Knows(A, q)
    assert model.holds(Implies(know_p, p))
    assert model.holds(Implies(And((Knows(A, Implies(p, q)), know_p)), know_q))
    assert model.holds(Implies(know_p, Knows(A, know_p)))
    assert model.holds(Implies(Not(know_p), Knows(A, Not(know_p))))
    assert model.knows(A, Constant(True))


@settings(max_examples=40)
@given(logs(), formulas, formulas)
def test_public_belief_is_kd45(log: list[Update], p: Formula, q: Formula) -> None:
    """Belief is consistent, closed under implication, introspective, known, and below knowledge."""
    model = fill(Model(), _public(log))
    believe_p, believe_q = Believes(A, p), Believes(A, q)
    assert not model.possible(Believes(A, Constant(False)))
    assert model.holds(Implies(And((Believes(A, Implies(p, q)), believe_p)), believe_q))
    assert model.holds(Iff(believe_p, Believes(A, believe_p)))
    assert model.holds(Iff(Not(believe_p), Believes(A, Not(believe_p))))
    assert model.holds(Iff(believe_p, Knows(A, believe_p)))
    assert model.holds(Implies(Knows(A, p), believe_p))


@settings(max_examples=40)
@given(logs(), formulas)
def test_private_talk_keeps_introspection(log: list[Update], p: Formula) -> None:
    """Whoever missed what, agents know what they know and believe."""
    model = fill(Model(), log)
    try:
        assert model.holds(Implies(Knows(A, p), Knows(A, Knows(A, p))))
        assert model.holds(Iff(Believes(A, p), Knows(A, Believes(A, p))))
        assert model.holds(Implies(Knows(A, p), Believes(A, p)))
    except CommonKnowledgeUndefined:
        assume(False)


@settings(max_examples=40)
@given(logs(), formulas)
def test_common_knowledge_is_a_fixpoint(log: list[Update], p: Formula) -> None:
    """C_G p is p, and everyone in G knowing C_G p; and each member knows what is common."""
    model = fill(Model(), _public(log))
    common = Common((A, B), p)
    assert model.holds(Iff(common, And((p, Knows(A, common), Knows(B, common)))))
    assert model.holds(Implies(common, Knows(A, Knows(B, p))))
    assert model.holds(Iff(Common((A,), p), Knows(A, p)))


@settings(max_examples=40)
@given(logs(), raised, formulas)
def test_explicit_is_knowledge_with_awareness(
    log: list[Update], expansions: list[Raised], p: Formula
) -> None:
    """X_i is K_i and aware_i."""
    model = fill(Model(awareness=awareness_of(expansions)), _public(log))
    assert model.holds(Iff(Explicit(A, p), And((Knows(A, p), Aware(A, p)))))


@settings(max_examples=40)
@given(plain_logs, plain_formulas)
def test_a_possible_plain_announcement_is_known(log: list[Update], p: Formula) -> None:
    """After a possible announcement without modalities it is common knowledge."""
    model = fill(Model(), _public(log))
    assume(model.possible(p))
    model.append(Update(9, UpdateKind.ANNOUNCEMENT, p))
    assert model.holds(Common(AGENTS, p))


@pytest.mark.parametrize("kind", [UpdateKind.RADICAL, UpdateKind.CONSERVATIVE])
@settings(max_examples=30)
@given(log=plain_logs, p=plain_formulas)
def test_a_plain_upgrade_succeeds_where_it_can(
    kind: UpdateKind, log: list[Update], p: Formula
) -> None:
    """After an upgrade without modalities every agent that does not know better believes it."""
    model = fill(Model(), _public(log))
    excluded = Knows(A, Not(p))
    excluded_before = [model.holds(excluded), model.possible(excluded)]
    model.append(Update(9, kind, p))
    assert model.holds(Implies(Not(excluded), Believes(A, p)))
    assert [model.holds(excluded), model.possible(excluded)] == excluded_before


@settings(max_examples=40)
@given(plain_logs, plain_formulas, plain_formulas)
def test_upgrades_revise_like_agm(log: list[Update], p: Formula, q: Formula) -> None:
    """An upgrade consistent with the beliefs adds it to them and nothing else, of either kind."""
    log = [update for update in _public(log) if update.kind is not UpdateKind.OBSERVES]
    for kind in (UpdateKind.RADICAL, UpdateKind.CONSERVATIVE):
        model = fill(Model(), log)
        assume(not model.believes(A, Not(p)))
        expected = model.believes(A, Implies(p, q))
        model.append(Update(9, kind, p))
        assert model.believes(A, q) == expected


@settings(max_examples=40)
@given(logs(), formulas)
def test_upgrades_teach_nothing(log: list[Update], p: Formula) -> None:
    """Upgrades change belief alone: what is known without modalities stays the same."""
    model = fill(Model(), _public(log))
    before = [model.knows(A, atom) for atom in map(Atom, "pqrs")]
    model.append(Update(9, UpdateKind.RADICAL, p))
    model.append(Update(9, UpdateKind.CONSERVATIVE, Not(p)))
    assert [model.knows(A, atom) for atom in map(Atom, "pqrs")] == before


@settings(max_examples=30)
@given(plain_logs, literals)
def test_radical_upgrades_repeat_without_effect(log: list[Update], p: Formula) -> None:
    """Saying the same upgrade twice in a row is saying it once."""
    once, twice = fill(Model(), log), fill(Model(), log)
    for model, times in ((once, 1), (twice, 2)):
        for _ in range(times):
            model.append(Update(9, UpdateKind.RADICAL, p))
    for name in "pqrs":
        assert once.believes(A, Atom(name)) == twice.believes(A, Atom(name))
        assert once.believes(B, Not(Atom(name))) == twice.believes(B, Not(Atom(name)))


NON_LAWS = [
    ("what is believed is true", (radical("p"),), "B_a p -> p"),
    ("what is true is known", (), "p -> K_a p"),
    ("what is true is believed", (), "p -> B_a p"),
    ("belief is knowledge", (radical("p"),), "B_a p -> K_a p"),
    ("believing a disjunction is believing a part", (radical("p | q"),), "B_a p | B_a q"),
    ("knowing a disjunction is knowing a part", (announce("p | q"),), "K_a p | K_a q"),
    ("agents know the same", (sees("a", "p"),), "K_a p -> K_b p"),
    ("missing an utterance keeps knowledge true", (announce("p", audience=("a",)),), "K_b p"),
]


@pytest.mark.parametrize(
    ("updates", "formula"), [case[1:] for case in NON_LAWS], ids=[case[0] for case in NON_LAWS]
)
def test_what_is_no_law_fails(updates: tuple[Update, ...], formula: str) -> None:
    """Each of these sounds right and is wrong in some model."""
    assert not holds(model_of(*updates), formula)


def test_shared_knowledge_need_not_be_common() -> None:
    """Both know that somebody has it, and neither knows that the other knows."""
    model = model_of(sees("a", "p"), sees("b", "q"))
    assert holds(model, "p & q -> K_a (p | q) & K_b (p | q)")
    assert not model.possible(parse("C[a, b] (p | q)"))


def test_an_announcement_can_make_itself_false() -> None:
    """Moore's sentence, true when it is said, is false of everyone who hears it."""
    model = model_of(sees("b", "p"))
    moore = "p & ~K_a p"
    assert model.possible(parse(moore))
    model.append(announce(moore))
    assert holds(model, f"~({moore})")
    assert holds(model, "K_a p")


def test_an_upgrade_with_a_belief_can_make_itself_disbelieved() -> None:
    """Upgrading with p and that it is not believed leads to believing p."""
    model = model_of(radical("p & ~B_a p"))
    assert holds(model, "B_a p")
    assert holds(model, "~B_a (p & ~B_a p)")


def test_the_two_upgrades_differ() -> None:
    """Once the best worlds of p prove false, only the radical one has lifted its others."""
    for upgrade, expected in ((radical, True), (conservative, False)):
        model = model_of(radical("q"), radical("~q | r"), upgrade("p"))
        assert holds(model, "B_a (p & q & r)")
        model.append(announce("~(p & q & r)"))
        assert holds(model, "B_a p") is expected


def test_a_conservative_upgrade_chooses_among_possible_worlds() -> None:
    """A world that was announced away is not the best one, however plausible it had been."""
    model = model_of(radical("q"), announce("~(p & q)"), conservative("p"))
    assert holds(model, "B_a (p & ~q)")


def test_a_conservative_upgrade_chooses_in_every_cell() -> None:
    """Who can tell whether p has the best worlds chosen on either side; who cannot has not."""
    model = model_of(sees("a", "p"), radical("p"), conservative("r"))
    assert holds(model, "B_a r & B_b r")
    model.append(announce("~p"))
    assert holds(model, "B_a r & ~B_b r")


def test_seeing_more_later_keeps_the_order() -> None:
    """An agent that comes to see a variable believes in each new cell what was best there."""
    model = model_of(radical("p -> q"), conservative("p & r"), sees("a", "p"))
    assert holds(model, "(p -> B_a (q & r)) & ~B_b ~p & B_b (p & r)")
    assert not model.possible(parse("~p & (B_a r | B_a ~r)"))


def test_the_order_of_upgrades_matters() -> None:
    """The later of two upgrades that exclude each other wins."""
    assert holds(model_of(radical("p"), radical("~p")), "B_a ~p")
    assert holds(model_of(radical("~p"), radical("p")), "B_a p")


def test_agents_are_not_explicitly_omniscient() -> None:
    """X_a is not closed under implication: the agent may not have the consequence in mind."""
    awareness = Awareness()
    awareness.expand("p", None, None)
    model = Model(awareness=awareness)
    fill(model, [announce("p"), announce("p -> q")])
    assert holds(model, "X_a p & K_a q")
    assert not model.possible(parse("X_a q"))
    assert not model.possible(parse("X_a (p | q)"))
    awareness.expand("q", ("a",), None)
    assert holds(model, "X_a q & ~X_b q")


def test_simultaneous_is_not_sequential() -> None:
    """Two who speak at once do not learn from each other before they speak."""
    setup = (sees("a", "q"), sees("b", "p"), announce("p | q"))
    ignorance = ("~K_a p", "~K_b q")
    together = model_of(*setup, *(announce(each, turn=2, at_once=True) for each in ignorance))
    in_turn = model_of(*setup, *(announce(each, turn=2) for each in ignorance))
    assert holds(together, "p & q & K_a p & K_b q")
    assert holds(in_turn, "q & K_a q")
    assert in_turn.possible(parse("~p & K_b q"))
