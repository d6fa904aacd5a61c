"""The benchmarks on the published files: the figures that need no model."""

from __future__ import annotations

from pathlib import Path

import pytest

from processor.evidence.answers import Found, Query
from processor.evidence.readers import ask
from processor.render.memory import memory_of
from replay.evaluate.adapters.dated import golds, in_order, slot_utterances
from replay.evaluate.adapters.dyknow import read_slots
from replay.evaluate.benchmark import LLM_ONLY, NATIVE, RAG, Benchmark, Options, Scores, Workload
from replay.evaluate.folding import fold_native
from replay.evaluate.suites.chains import CHAINS
from replay.evaluate.suites.conversations import LOCOMO
from replay.evaluate.suites.dated import DYKNOW, TEMPLAMA
from replay.evaluate.suites.memab_fc import MEMAB_FC, MULTI, SINGLE
from replay.evaluate.suites.reviseqa import NO_RETRACTION, REVISEQA
from schemas.evidence import MemoryClass

Scored = dict[tuple[str, str], Scores]


def measured(
    benchmark: Benchmark, data: Path, arms: tuple[str, ...], every: int = 1
) -> tuple[Workload, Scored]:
    """The scores of some arms on every so many items."""
    workload = benchmark.load(Options(data))
    items = list(workload.items)[::every]
    return workload, {(i.id, arm): workload.measure(i, arm) for i in items for arm in arms}


def mean(workload: Workload, scored: Scored, arm: str, measure: str, group: str = "") -> float:
    """The mean of a measure for an arm, over a group or all."""
    found = [
        scored[item.id, arm][measure]
        for item in workload.items
        if (item.id, arm) in scored
        and item.group.startswith(group)
        and measure in scored[item.id, arm]
    ]
    return sum(found) / len(found)


@pytest.mark.data
def test_fact_consolidation_hands_over_the_gold_in_few_tokens(shared_data: Path) -> None:
    """Single-hop 100 of 100 with nothing superseded, multi-hop at least 96, at most 174 tokens."""
    data = shared_data / "memab_fc" / "factconsolidation_6k.json"
    workload, scored = measured(MEMAB_FC, data, (NATIVE, RAG, LLM_ONLY))
    assert mean(workload, scored, NATIVE, "gold_in_evidence", SINGLE) == 1
    assert mean(workload, scored, NATIVE, "gold_in_evidence", MULTI) >= 0.96
    assert mean(workload, scored, NATIVE, "superseded_shown") == 0
    assert mean(workload, scored, NATIVE, "tokens") <= 174
    assert 174 < mean(workload, scored, RAG, "tokens") < mean(workload, scored, LLM_ONLY, "tokens")
    assert "455 facts parsed: 294 active and 161 superseded in 294 slots" in workload.notes(scored)


@pytest.mark.data
def test_the_closure_is_the_graph_for_every_premise_of_every_chain(shared_data: Path) -> None:
    """1,964 premises of 145 scenarios; one step is right on about one in six."""
    workload, scored = measured(
        CHAINS, shared_data / "reviseqa" / "scenarios.jsonl", ("closure", "one_step")
    )
    assert len(workload.items) == 1_964
    assert mean(workload, scored, "closure", "exact") == 1
    assert mean(workload, scored, "closure", "over_retraction") == 0
    assert 0.1 < mean(workload, scored, "one_step", "exact") < 0.25
    assert "closure: right on every premise in 145 of 145 scenarios" in workload.notes(scored)


@pytest.mark.data
def test_what_stands_after_an_edit_decides_the_conclusion(shared_data: Path) -> None:
    """Nothing is over-retracted; edits that contradict themselves are neither right nor wrong."""
    data = shared_data / "reviseqa" / "scenarios.jsonl"
    workload, scored = measured(REVISEQA, data, (NATIVE, NO_RETRACTION))
    assert len(workload.items) == 145 * 7
    assert mean(workload, scored, NATIVE, "premises_exact") == 1
    assert mean(workload, scored, NATIVE, "over_retraction") == 0
    conflicts = [key for key, scores in scored.items() if "conflict" in scores]
    assert len(conflicts) == 2 * 87
    assert not any("right" in scored[key] for key in conflicts)
    assert mean(workload, scored, NATIVE, "right") > 0.99
    assert mean(workload, scored, NO_RETRACTION, "right") < 0.2
    at_k = workload.complete(scored)
    assert all(scores["accuracy_at_k"] == 1 for (_, arm), scores in at_k.items() if arm == NATIVE)


def check_dated(benchmark: Benchmark, data: Path, every: int = 1) -> Workload:
    """Retaining classes are right on both queries, a discarding one on snapshots alone."""
    arms = ("coarse_discard", "coarse_retain", "ledger", "latest_only", "render_matched")
    workload, scored = measured(benchmark, data, arms, every)
    for arm in ("coarse_retain", "ledger"):
        assert mean(workload, scored, arm, "exact", "provenance") == 1
    for arm in ("coarse_discard", "coarse_retain", "ledger"):
        assert mean(workload, scored, arm, "exact", "snapshot") == 1
    for arm in ("coarse_discard", "latest_only", "render_matched"):
        assert mean(workload, scored, arm, "exact", "provenance") == 0
    assert mean(workload, scored, "latest_only", "exact", "snapshot") < 1
    return workload


@pytest.mark.data
def test_dyknow_has_one_history_in_any_order(shared_data: Path) -> None:
    """All slots whose dates order their values; retaining classes are right on both queries."""
    workload = check_dated(DYKNOW, shared_data / "dyknow" / "qa_generated.json")
    (orders,) = [note for note in workload.notes({}) if "in the stored order" in note]
    same, _, total = orders.split()[:3]
    assert same == total == "118"


@pytest.mark.data
def test_dyknow_abstains_on_values_that_go_on_at_once_unless_a_facet_tells_them_apart(
    shared_data: Path,
) -> None:
    """Eight slots have several without the facet for national teams, none with it."""
    path = shared_data / "dyknow" / "qa_generated.json"
    assert not any(g.several for slot in read_slots(path, True).slots for g in golds(slot))
    plain = [slot for slot in read_slots(path, False).slots if any(g.several for g in golds(slot))]
    assert len(plain) == 8
    for slot in plain:
        for order in (slot, in_order(slot)):
            memory = memory_of(fold_native(slot_utterances(order)), MemoryClass.LEDGER)
            (key,) = memory.keys()
            assert ask(memory, Query(key)).found is Found.ABSTAIN


@pytest.mark.data
@pytest.mark.thorough
def test_templama_provenance_needs_retention(shared_data: Path) -> None:
    """On every slot whose years order its values."""
    check_dated(TEMPLAMA, shared_data / "templama" / "templama.jsonl")


@pytest.mark.data
@pytest.mark.thorough
def test_locomo_evidence_is_counted_for_every_question(shared_data: Path) -> None:
    """More turns hand over more of the evidence, and the whole context nearly all of it."""
    workload, scored = measured(
        LOCOMO, shared_data / "locomo" / "locomo.json", ("rag", "rag_50", LLM_ONLY)
    )
    assert len(workload.items) == 1_744
    few, more, whole = (
        mean(workload, scored, arm, "evidence_recall") for arm in ("rag", "rag_50", LLM_ONLY)
    )
    assert 0.5 < few < more < 0.9
    assert whole > 0.99
