"""The retraction queries of the scenarios, with the gold sets stated here and found three ways."""

from __future__ import annotations

import pytest

from processor import scenarios
from processor.engine.retraction import affected_by_ids
from schemas.operations import Hypothesize, InlineRecord, Observe, Resolve, Support
from tests.scenarios.native_log import fold_all

HYPOTHESES = ("h1", "h2", "h3", "h4")

CLOSURE_GOLD = {
    "o8": {"h1", "h2"},
    "o9": {"h1", "h3", "h4"},
    "o6": {"h1", "h3", "h4"},
    "o5": {"h1", "h3", "h4"},
}
"""Withdrawn observation -> the hypotheses that rest on it: 4 queries, 16 yes or no decisions."""

ONE_STEP_ANSWERS = {"o8": {"h1", "h2"}, "o9": {"h3"}, "o6": {"h3"}, "o5": {"h3"}}


def supports_by_hand(name: str) -> dict[str, set[str]]:
    """Record -> what it rests on, read from the operations without the engine."""
    supports: dict[str, set[str]] = {}
    for utterance in scenarios.utterances(name):
        for operation in utterance.operations or ():
            match operation:
                case Observe() | Hypothesize():
                    supports.setdefault(operation.record, set()).update(
                        _ids(operation.premises, supports)
                    )
                case Support():
                    supports[operation.target].update(_ids((operation.evidence,), supports))
                case Resolve():
                    for subsumed in operation.subsumes:
                        supports[subsumed].add(operation.target)
                    if operation.decision is not None:
                        decision = _ids((operation.decision,), supports)
                        supports[decision.pop()].add(operation.target)
                case _:
                    pass
    return supports


def _ids(references: tuple[str | InlineRecord, ...], supports: dict[str, set[str]]) -> set[str]:
    ids = set()
    for reference in references:
        if isinstance(reference, InlineRecord):
            supports[reference.record] = _ids(reference.premises, supports)
            ids.add(reference.record)
        else:
            ids.add(reference)
    return ids


def reachable(supports: dict[str, set[str]], start: str) -> set[str]:
    """What `start` rests on over one or more links, by plain sweeps until nothing is new."""
    reached = set(supports.get(start, ()))
    while True:
        further = {s for record in reached for s in supports.get(record, ())} - reached
        if not further:
            return reached
        reached |= further


@pytest.mark.parametrize("withdrawn", CLOSURE_GOLD)
def test_the_closure_gives_the_gold_set_of_every_retraction(withdrawn: str) -> None:
    """Affected* over the incident's four hypotheses is the gold set, for each of the four."""
    state = fold_all(scenarios.utterances("incident")).state
    answer = affected_by_ids(state, (withdrawn,)).transitive
    assert {id_ for id_ in answer if id_ in HYPOTHESES} == CLOSURE_GOLD[withdrawn]


def test_all_sixteen_decisions_of_the_closure_are_right() -> None:
    """Four retractions over four hypotheses are 16 decisions, and the closure makes no mistake."""
    state = fold_all(scenarios.utterances("incident")).state
    right = sum(
        (hypothesis in affected_by_ids(state, (withdrawn,)).transitive) is (hypothesis in gold)
        for withdrawn, gold in CLOSURE_GOLD.items()
        for hypothesis in HYPOTHESES
    )
    assert right == 16


def test_the_one_step_query_is_right_on_exactly_one_retraction() -> None:
    """Affected alone finds the whole set for o8 and falls short on o9, o6 and o5."""
    state = fold_all(scenarios.utterances("incident")).state
    answers = {
        withdrawn: {id_ for id_ in affected_by_ids(state, (withdrawn,)).direct if id_ in HYPOTHESES}
        for withdrawn in CLOSURE_GOLD
    }
    assert answers == ONE_STEP_ANSWERS
    assert [w for w, answer in answers.items() if answer == CLOSURE_GOLD[w]] == ["o8"]


def test_the_gold_sets_follow_from_the_operations_alone() -> None:
    """Reading the links off the operations, without the engine, gives the same gold sets."""
    supports = supports_by_hand("incident")
    for withdrawn, gold in CLOSURE_GOLD.items():
        assert {h for h in HYPOTHESES if withdrawn in reachable(supports, h)} == gold
        assert {h for h in HYPOTHESES if withdrawn in supports[h]} == ONE_STEP_ANSWERS[withdrawn]


def test_the_stored_retractions_are_the_gold_sets() -> None:
    """The scenario's expectations carry the same gold, for whoever evaluates against them."""
    stored = scenarios.expected("incident").retractions
    assert stored is not None
    assert stored.over == HYPOTHESES
    assert {w: set(ids) for w, ids in stored.closure.items()} == CLOSURE_GOLD
    assert {w: set(ids) for w, ids in stored.one_step.items()} == ONE_STEP_ANSWERS


@pytest.mark.parametrize("name", ["incident", "deliberation"])
def test_the_engine_gives_the_stored_answers(name: str) -> None:
    """Closure and one-step query agree with what the scenario stores for each of them."""
    stored = scenarios.expected(name).retractions
    assert stored is not None
    state = fold_all(scenarios.utterances(name)).state
    reports = {withdrawn: affected_by_ids(state, (withdrawn,)) for withdrawn in stored.closure}
    for gold, query in ((stored.closure, "transitive"), (stored.one_step, "direct")):
        answers = {
            withdrawn: tuple(id_ for id_ in getattr(report, query) if id_ in stored.over)
            for withdrawn, report in reports.items()
        }
        assert answers == gold


def test_the_assumption_that_flips_takes_down_the_decision_and_nothing_else() -> None:
    """Affected*(a3) in good standing is the decision alone; the rule on rights is not in it."""
    state = fold_all(scenarios.utterances("deliberation")).state
    assert affected_by_ids(state, ("a3",)).in_good_standing == ("d1",)
    assert state.records["acl"].grounded
    assert not state.records["d1"].grounded
    supports = supports_by_hand("deliberation")
    assert {record for record in supports if "a3" in reachable(supports, record)} == {"d1"}
