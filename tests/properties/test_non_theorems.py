"""What does not hold, each with the smallest conversation that shows it."""

from __future__ import annotations

from processor.engine.retraction import affected_by_ids
from processor.engine.state import State
from processor.engine.verify import verify
from schemas.derived import Grade, Outcome, Standing, TurnEvent
from tests.oracles import naive_queries as ask
from tests.oracles.naive_map import Json
from tests.properties.engine_driver import EngineDriver, as_map


def observe(record: str, *premises: str) -> Json:
    """An observation on its premises."""
    return {"op": "observe", "record": record, "claim": record, "premises": list(premises)}


def attack(op: str, target: str, by: str) -> Json:
    """An undermining or a revision."""
    role = "evidence" if op == "undermine" else "by"
    return {"op": op, "target": target, role: by}


def support(target: str, evidence: str) -> Json:
    """Corroboration."""
    return {"op": "support", "target": target, "evidence": evidence}


def said(*turns: list[Json]) -> tuple[State, TurnEvent]:
    """The state after these turns, and the last turn's event."""
    driver = EngineDriver()
    for number, operations in enumerate(turns, start=1):
        utterance = {
            "conversation_id": "c",
            "utterance_id": f"u{number}",
            "speaker": "ann",
            "at": "2026-03-01T02:00:00Z",
            "operations": operations,
        }
        last = driver.fold(utterance)[0]
    assert isinstance(last, TurnEvent)
    return driver.conversations["default", "c"].state, last


def test_good_standing_is_not_groundedness() -> None:
    """A record in good standing is ungrounded when what it rests on has fallen."""
    state, _ = said([observe("a"), observe("b", "a"), observe("x")], [attack("revise", "a", "x")])
    assert state.records["b"].stands
    assert not state.records["b"].grounded


def test_one_step_is_not_the_closure() -> None:
    """A record two links away is affected, but not in one step."""
    state, _ = said([observe("a"), observe("b", "a"), observe("c", "b")])
    report = affected_by_ids(state, ["a"])
    assert (report.direct, report.transitive) == (("b",), ("b", "c"))


def test_one_step_removal_does_not_keep_what_is_left_grounded() -> None:
    """Proposition 2.3 preserves the end of a chain, which is ungrounded all the same."""
    state, _ = said(
        [observe("a"), observe("b", "a"), observe("c", "b"), observe("x")],
        [attack("revise", "a", "x")],
    )
    m = as_map(state)
    preserved = ask.good_standing(m) - {"a"} - ask.affected(m, ["a"])
    assert preserved == {"c", "x"}
    assert not state.records["c"].grounded


def test_closure_removal_does_not_keep_what_is_left_grounded() -> None:
    """What has no path to one withdrawn record may still rest on another."""
    state, _ = said(
        [observe("a"), observe("b"), observe("c", "b"), observe("x")],
        [attack("revise", "a", "x"), attack("revise", "b", "x")],
    )
    m = as_map(state)
    preserved = ask.good_standing(m) - {"a"} - ask.affected_closure(m, ["a"])
    assert "c" in preserved
    assert not state.records["c"].grounded


def test_more_evidence_does_not_make_a_claim_safer() -> None:
    """Losing evidence that was added later ungrounds the claim; only the grade tells it apart."""
    turns = [[observe("a"), observe("h", "a"), observe("e"), observe("x")]]
    fall = [attack("revise", "e", "x")]
    without, _ = said(*turns, fall)
    assert verify(without, ["h"]).outcome is Outcome.GROUNDED
    supported, _ = said(*turns, [support("h", "e")], fall)
    verdict = verify(supported, ["h"])
    assert (verdict.outcome, verdict.grade) == (Outcome.UNGROUNDED, Grade.CORROBORATION_LOST)


def test_corroboration_of_a_premise_is_corroboration_too() -> None:
    """The grade ignores corroboration at every depth, not only at the claim itself."""
    state, _ = said(
        [observe("a"), observe("h", "a"), observe("e"), observe("x")],
        [support("a", "e")],
        [attack("revise", "e", "x")],
    )
    assert verify(state, ["h"]).grade is Grade.CORROBORATION_LOST


def test_evidence_cited_as_a_premise_first_stays_a_premise() -> None:
    """Supporting a record with its own premise does not turn that premise into corroboration."""
    state, _ = said(
        [observe("a"), observe("h", "a"), observe("x")],
        [support("h", "a")],
        [attack("revise", "a", "x")],
    )
    assert verify(state, ["h"]).grade is Grade.UNGROUNDED


def test_standing_never_returns() -> None:
    """Neither support, nor the fall of the attacker, nor saying it again restores a record."""
    state, last = said(
        [observe("a"), observe("x"), observe("y")],
        [attack("undermine", "a", "x")],
        [support("a", "y"), attack("revise", "x", "y"), observe("a")],
    )
    assert state.records["a"].standing is Standing.WEAKENED
    assert last.applied == (0, 1)
    assert [rejection.code for rejection in last.rejections] == ["duplicate_record"]


def test_a_fallen_record_may_still_attack() -> None:
    """An attacker needs no good standing, unlike the evidence of a support."""
    state, last = said(
        [observe("a"), observe("b"), observe("x")],
        [attack("revise", "x", "a")],
        [support("b", "x"), attack("revise", "b", "x")],
    )
    assert [rejection.code for rejection in last.rejections] == ["evidence_not_in_good_standing"]
    assert state.records["b"].standing is Standing.ABANDONED


def test_a_turn_is_not_its_operations_one_after_the_other() -> None:
    """In one turn an operation may cite what stands after it; in turns of their own it may not."""
    operations = [support("a", "e"), observe("a"), observe("e")]
    together, _ = said(operations)
    apart, _ = said(*([operation] for operation in operations))
    assert [one.id for one, _ in together.records["a"].links()] == ["e"]
    assert apart.records["a"].links() == ()


def test_a_cycle_affects_its_own_members() -> None:
    """Two records that subsume each other are each affected by their own withdrawal."""
    resolve = {"op": "resolve", "mode": "authoritative"}
    state, last = said(
        [observe("a"), observe("b")],
        [
            {**resolve, "target": "a", "subsumes": ["b"]},
            {**resolve, "target": "b", "subsumes": ["a"]},
        ],
    )
    assert last.rejections == ()
    assert affected_by_ids(state, ["a"]).transitive == ("a", "b")
    assert state.records["a"].grounded
