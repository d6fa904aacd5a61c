"""Reasoning chains as dependency maps: a withdrawal reports exactly what was derived from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from processor.engine.retraction import affected_by_ids
from replay.evaluate.adapters import AdapterError
from replay.evaluate.adapters.reviseqa import (
    Scenario,
    premise_ids,
    read_scenarios,
    scenario_utterances,
    step_ids,
    utterances,
)
from schemas.derived import RetractionImpact
from schemas.operations import InlineRecord, Operation, Revise
from schemas.utterance import Utterance
from tests.scenarios.native_log import fold_all, fold_utterances


def statement(id_: int, text: str) -> dict[str, object]:
    """A fact, rule or conclusion in the published format."""
    return {"id": id_, "text": text, "fol": "p"}


SMALL = {
    "id": "ex_7",
    "answer": "True",
    "reasoning_chain": [
        {
            "facts": [statement(0, "It rains."), statement(1, "Ada is out.")],
            "rules": [statement(0, "Who is out in the rain gets wet.")],
            "conclusion": statement(2, "Ada is wet."),
        },
        {
            "facts": [statement(3, "Ada has a towel.")],
            "rules": [statement(1, "Who has a towel and a sauna is happy.")],
            "conclusion": None,
        },
        {
            "facts": [statement(2, "Ada is wet.")],
            "rules": [],
            "conclusion": statement(2, "Ada is wet or cold."),
        },
        {
            "facts": [statement(2, "Ada is wet or cold.")],
            "rules": [statement(0, "Who is out in the rain gets wet.")],
            "conclusion": statement(4, "Ada wants to go home."),
        },
    ],
}


def small() -> Scenario:
    """A chain of our own with a step that leads nowhere and a conclusion id used twice."""
    return Scenario.model_validate_json(json.dumps(SMALL))


def above(chain: list[dict[str, Any]]) -> dict[tuple[str, int], set[str]]:
    """For each leaf of a published chain, ('fact' or 'rule', its id), the steps derived from it.

    An oracle that shares nothing with the adapter: it carries the set of leaves under each
    conclusion forward through the steps.
    """
    leaves_of: dict[int, set[tuple[str, int]]] = {}
    result: dict[tuple[str, int], set[str]] = {}
    for place, step in enumerate(chain, start=1):
        leaves: set[tuple[str, int]] = {("rule", rule["id"]) for rule in step["rules"]}
        for fact in step["facts"]:
            leaves |= leaves_of.get(fact["id"], {("fact", fact["id"])})
        for leaf in leaves:
            result.setdefault(leaf, set())
        if step["conclusion"] is not None:
            leaves_of[step["conclusion"]["id"]] = leaves
            for leaf in leaves:
                result[leaf].add(f"s{place}")
    return result


def record_of(leaf: tuple[str, int]) -> str:
    """The record id of a leaf."""
    kind, number = leaf
    return f"{'f' if kind == 'fact' else 'r'}{number}"


def withdrawal(scenario: Scenario, target: str) -> Utterance:
    """A further turn in which a premise is given up."""
    operations: tuple[Operation, ...] = (
        Revise(op="revise", target=target, by=InlineRecord(record="e", claim="It was wrong.")),
    )
    last = list(scenario_utterances(scenario))[-1]
    return last.model_copy(update={"utterance_id": "w", "operations": operations})


def test_a_chain_becomes_premises_and_steps() -> None:
    """Leaves come first, a step without conclusion makes no record, a reused id is a new record."""
    scenario = small()
    assert premise_ids(scenario) == ("f0", "f1", "r0", "f3", "r1")
    assert step_ids(scenario) == ("s1", "s3", "s4")
    state = fold_all(scenario_utterances(scenario)).state
    links = {
        record.id: [support.id for support in record.supports]
        for record in state.records.values()
        if record.supports
    }
    assert links == {"s1": ["f0", "f1", "r0"], "s3": ["s1"], "s4": ["s3", "r0"]}
    assert state.records["s3"].claim == "Ada is wet or cold."


def test_a_premise_of_a_step_that_leads_nowhere_supports_nothing() -> None:
    """Withdrawing what only an inconclusive step used reports no step."""
    state = fold_all(scenario_utterances(small())).state
    assert affected_by_ids(state, ("f3",)).transitive == ()
    assert affected_by_ids(state, ("f0",)).transitive == ("s1", "s3", "s4")


def test_an_id_with_two_sentences_is_an_error() -> None:
    """Two facts under one id would be taken for one premise, so the adapter stops."""
    first = {"facts": [statement(0, "It rains.")], "rules": [], "conclusion": None}
    second = {"facts": [statement(0, "It snows.")], "rules": [], "conclusion": None}
    stored = json.dumps({"id": "ex_8", "reasoning_chain": [first, second]})
    with pytest.raises(AdapterError, match="ex_8: f0"):
        list(scenario_utterances(Scenario.model_validate_json(stored)))


def test_a_bad_line_is_named_with_its_number(tmp_path: Path) -> None:
    """The error says which file, line and field."""
    path = tmp_path / "scenarios.jsonl"
    path.write_text(f"{json.dumps(SMALL)}\n\n{json.dumps({'id': 'ex_9'})}\n")
    with pytest.raises(AdapterError, match=r"scenarios\.jsonl:3: reasoning_chain"):
        list(utterances(path))


@pytest.fixture
def published(shared_data: Path) -> Path:
    """The published scenarios."""
    return shared_data / "reviseqa" / "scenarios.jsonl"


def both_forms(path: Path) -> Iterator[tuple[Scenario, list[dict[str, Any]]]]:
    """Each scenario as the adapter reads it, and its chain as published."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for scenario, line in zip(read_scenarios(path), lines, strict=True):
        yield scenario, line["reasoning_chain"]


@pytest.mark.data
def test_withdrawing_any_premise_reports_exactly_the_steps_above_it(published: Path) -> None:
    """In all 145 chains, Affected* of each leaf is what an independent oracle derives from it."""
    scenarios = 0
    for scenario, chain in both_forms(published):
        scenarios += 1
        oracle = above(chain)
        state = fold_all(scenario_utterances(scenario)).state
        assert sorted(map(record_of, oracle)) == sorted(premise_ids(scenario)), scenario.id
        for leaf, steps in oracle.items():
            report = affected_by_ids(state, (record_of(leaf),))
            assert report.transitive == tuple(sorted(steps)), (scenario.id, leaf)
            assert report.in_good_standing == report.transitive
    assert scenarios == 145


@pytest.mark.data
def test_a_premise_that_is_withdrawn_in_fact_ungrounds_exactly_the_steps_above_it(
    published: Path,
) -> None:
    """In all 145 chains the impact of giving up the first leaf names those steps, none other."""
    for scenario, chain in both_forms(published):
        leaf, steps = next(iter(sorted(above(chain).items())))
        target = record_of(leaf)
        said = [*scenario_utterances(scenario), withdrawal(scenario, target)]
        *_, (_, conversation, events) = fold_utterances(said)
        (impact,) = [event for event in events if isinstance(event, RetractionImpact)]
        assert impact.newly_ungrounded == tuple(sorted(steps)), scenario.id
        ungrounded = {r.id for r in conversation.state.records.values() if not r.grounded}
        assert ungrounded == {target, *steps}


@pytest.mark.data
def test_the_one_step_query_misses_steps_in_most_chains(published: Path) -> None:
    """Affected alone is not Affected*: nearly every chain has a leaf for which it falls short."""
    short = 0
    for scenario, chain in both_forms(published):
        state = fold_all(scenario_utterances(scenario)).state
        short += any(
            len(affected_by_ids(state, (record_of(leaf),)).direct) < len(steps)
            for leaf, steps in above(chain).items()
        )
    assert short > 100
