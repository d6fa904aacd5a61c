"""The benchmarks of our own: what must come out whatever the machine."""

from __future__ import annotations

import pytest

from processor.evidence.memories import AWARE_CLASSES, BLIND_CLASSES
from replay.evaluate.benchmark import Benchmark, Options
from replay.evaluate.measurements import Measurements
from replay.evaluate.report import Report, report
from replay.evaluate.runner import measure_all
from replay.evaluate.suites.latency import LATENCY, Latency
from replay.evaluate.suites.noise import LEVELS, NOISE, PATH_RECALL, drawn
from replay.evaluate.suites.render_terms import RENDER_TERMS, REVERT_PAIRS
from replay.evaluate.suites.scenarios import DELIBERATION, INCIDENT, MUDDY_CHILDREN
from replay.evaluate.suites.stale_premise import (
    EARLY,
    STALE_PREMISE,
    conversations,
)
from replay.evaluate.suites.streams import CONFLICT, REFINES, REVERTED, TAKEOVER, pairs, streams


def measured(benchmark: Benchmark, seed: int = 0, limit: int | None = None) -> Report:
    """The report of a benchmark of our own."""
    workload = benchmark.load(Options(seed=seed))
    items = list(workload.items)[:limit]
    subject: dict[str, str | None] = {"benchmark": benchmark.name, "seed": str(seed)}
    kept = Measurements(None, subject)
    measurements = measure_all(workload, items, benchmark.arms, kept, lambda: None)
    return report(benchmark, workload, subject, measurements)


def means(made: Report, measure: str, group: str = "") -> dict[str, float]:
    """The mean of a measure for each arm."""
    rows = [row for row in made.rows if row.measure == measure and row.group == group]
    return {row.arm: row.figure.mean for row in rows}


def test_the_incident_is_right_on_four_of_four_and_sixteen_of_sixteen() -> None:
    """One step is right on one retraction."""
    made = measured(INCIDENT)
    assert means(made, "exact") == {"closure": 1, "one_step": 0.25}
    assert sum(o.scores["decisions_right"] for o in made.measurements if o.arm == "closure") == 16
    assert "closure: right on 4 of 4 retractions, 16 of 16 decisions" in made.notes


def test_the_muddy_children_go_from_eight_worlds_to_one() -> None:
    """8, 7, 4 and 1 worlds, and every knowledge claim as it is stored."""
    made = measured(MUDDY_CHILDREN)
    worlds = [o.scores["worlds"] for o in made.measurements if "worlds" in o.scores]
    assert list(dict.fromkeys(worlds)) == [8, 7, 4, 1]
    assert means(made, "worlds_right") == {"engine": 1}
    for measurement in made.measurements:
        assert measurement.scores.get("claims_right") == measurement.scores.get("claims")


def test_the_deliberation_loses_its_one_decision() -> None:
    """What is affected and stood is exactly that."""
    made = measured(DELIBERATION)
    assert means(made, "exact")["closure"] == 1


def test_both_latency_queries_answer_alike_and_go_on_to_longer_conversations() -> None:
    """The conversation grows from item to item, and is begun anew for a shorter one."""
    workload = Latency()
    for place in (0, 1, 0, 2):
        scores = workload.measure(workload.items[place], LATENCY.arms[0])
        assert scores["answers_equal"] == 1
        assert scores["affected"] == 11


@pytest.mark.thorough
def test_latency_up_to_a_hundred_thousand_turns() -> None:
    """The closure query does not slow down, the replay does."""
    made = measured(LATENCY)
    assert means(made, "answers_equal") == {"closure": 1, "flat_replay": 1}
    times = {(o.arm, o.group): o.scores["microseconds"] for o in made.measurements}
    assert times["closure", "100000"] < 20 * times["closure", "13"]
    assert times["flat_replay", "100000"] > 1_000 * times["flat_replay", "13"]


def test_the_stale_premises_are_fifty_and_fifteen_are_withdrawn_early() -> None:
    """Each has words of its own, and both verdicts occur."""
    found = conversations()
    assert len(found) == 50
    assert sum(each.withdrawn_early for each in found) == 15
    assert {each.gold for each in found} == {"grounded", "ungrounded"}
    assert len({each.id for each in found}) == 50
    for each in found:
        revised = [t for t in each.turns if any(o.op == "revise" for o in t.operations)]
        if each.withdrawn_early:
            assert len(each.turns) - each.turns.index(revised[0]) > 6


def test_the_check_finds_every_stale_premise_and_spares_every_other() -> None:
    """Closure is right on all; one step and a short memory miss what was withdrawn early."""
    made = measured(STALE_PREMISE)
    assert means(made, "right") == {"closure": 1, "one_step": 0.4, "window": 0.6}
    assert means(made, "right", EARLY) == {"closure": 1, "one_step": 0, "window": 0}
    assert means(made, "over_retraction")["closure"] == 0


def test_blind_classes_cannot_pass_one_half_and_aware_ones_are_right_on_all() -> None:
    """Proposition 1 on the symmetric pairs."""
    made = measured(REVERT_PAIRS)
    right = means(made, "exact")
    assert all(right[each] <= 0.5 for each in BLIND_CLASSES)
    assert all(right[each] == 1 for each in AWARE_CLASSES)


def test_pairs_differ_in_their_relations_alone() -> None:
    """Values, times and sources of both streams of a pair are equal, their answers are not."""
    found = pairs(30)
    for one, other in zip(found[::2], found[1::2], strict=True):
        first = [a.fact for a in one.arrivals(typed=True)]
        assert first == [a.fact for a in other.arrivals(typed=True)]
        assert one.gold != other.gold


def test_the_terms_add_up_to_the_whole_gain() -> None:
    """Render and fine mechanism are the ledger less the blind store, in every stratum."""
    made = measured(RENDER_TERMS)
    terms = {
        (each.contrast.name, each.group): each.paired.difference.mean for each in made.compared
    }
    for group in (REVERTED, CONFLICT, REFINES, TAKEOVER, ""):
        right = means(made, "exact", group)
        whole = right["ledger"] - right["graphrag_abstain"]
        assert terms["render", group] + terms["fine mechanism", group] == pytest.approx(whole)
    assert (terms["render", REVERTED], terms["fine mechanism", REVERTED]) == (1, 0)
    assert (terms["render", CONFLICT], terms["coarse mechanism", CONFLICT]) == (-1, 1)


def test_noise_meets_both_arms_alike_and_more_noise_spoils_more() -> None:
    """With a reader that reads everything, fine less coarse is nothing at every level."""
    made = measured(NOISE)
    assert all(each.paired.difference.mean == 0 for each in made.compared)
    for arm in NOISE.arms:
        curve = [means(made, "snapshot", level)[arm] for level in LEVELS]
        assert curve[0] == means(made, "snapshot", "0")["coarse_labels"]
        assert curve[0] > curve[2] > curve[5]


def test_noise_is_drawn_from_the_seed_and_the_pair_alone() -> None:
    """The same question has the same answer, and the draws are spread evenly."""
    assert drawn(1, "label", "s", 0, 1) == drawn(1, "label", "s", 0, 1)
    assert drawn(1, "label", "s", 0, 1) != drawn(2, "label", "s", 0, 1)
    below = sum(drawn(0, place) < 0.3 for place in range(2_000))
    assert 520 < below < 680


def test_another_seed_gives_other_streams() -> None:
    """The streams come from the seed."""
    assert streams(1, 3) == streams(1, 3)
    assert streams(1, 3) != streams(2, 3)


def test_path_recall_names_the_stage_at_which_a_takeover_is_lost() -> None:
    """Without the word of another source the rules see a conflict: the pair is what fails."""
    made = measured(PATH_RECALL)
    assert means(made, "right", TAKEOVER) == {
        "as_it_is": 0,
        "pair_oracle": 1,
        "row_oracle": 1,
        "render_oracle": 1,
    }
    assert f"{TAKEOVER}: pair 0.000, arbitration 1.000, render 1.000, decode 1.000" in made.notes
    for stratum in (REVERTED, CONFLICT, REFINES):
        assert means(made, "right", stratum)["as_it_is"] == 1
