"""The oracle on hand-made conversations, so that it is itself held to the specification."""

from __future__ import annotations

import pytest

from tests.oracles import naive_queries as ask
from tests.oracles.naive_engine import NaiveEngine
from tests.oracles.naive_map import EVERYONE, Json, Map

KEY = ("default", "c")


def statement(number: int, *operations: Json, speaker: str = "ann", **rest: object) -> Json:
    """One native statement."""
    return {
        "conversation_id": "c",
        "utterance_id": f"u{number}",
        "speaker": speaker,
        "operations": list(operations),
        **rest,
    }


def candidate(number: int, claims: list[Json] | None) -> Json:
    """A draft with its claims."""
    return {
        "conversation_id": "c",
        "utterance_id": f"u{number}",
        "speaker": "ann",
        "kind": "candidate",
        "claims": claims,
    }


def observe(record: str, *premises: str | Json) -> Json:
    """An observation on its premises."""
    return {"op": "observe", "record": record, "claim": record, "premises": list(premises)}


def hypothesize(record: str, *premises: str | Json, explains: tuple[str, ...] = ()) -> Json:
    """A hypothesis on its premises."""
    return {**observe(record, *premises), "op": "hypothesize", "explains": list(explains)}


def inline(record: str, *premises: str | Json) -> Json:
    """A record introduced where it is cited."""
    return {"record": record, "claim": record, "premises": list(premises)}


def support(target: str, evidence: str | Json) -> Json:
    """Corroboration for a target."""
    return {"op": "support", "target": target, "evidence": evidence}


def undermine(target: str, evidence: str | Json) -> Json:
    """An attack that weakens."""
    return {"op": "undermine", "target": target, "evidence": evidence}


def revise(target: str, by: str | Json) -> Json:
    """An attack that withdraws."""
    return {"op": "revise", "target": target, "by": by}


def resolve(target: str, **rest: object) -> Json:
    """A resolution by consent."""
    return {"op": "resolve", "target": target, "mode": "consensual", **rest}


def question(name: str, *about: str) -> Json:
    """An open problem."""
    return {"op": "question", "question": name, "text": name, "about": list(about)}


def heard(*utterances: Json) -> tuple[Map, list[list[Json]]]:
    """The map after the utterances of one conversation, and the events of each."""
    engine = NaiveEngine()
    events = [engine.say(utterance) for utterance in utterances]
    return engine.conversations[KEY].map, events


def codes(events: list[Json]) -> list[tuple[int, str]]:
    """The rejections of a statement."""
    return [(r["index"], r["code"]) for r in events[0]["data"]["rejections"]]


def incident() -> list[Json]:
    """The thirteen turns of the incident, reduced to their support links and standings."""
    turns = [
        [*(observe(f"o{n}") for n in range(1, 5)), question("q1", "o1", "o2", "o3")],
        [observe("o5"), observe("o6"), question("q2", "o6")],
        [observe("o7"), observe("o8")],
        [{"op": "expand_awareness", "proposition": "mis_monitor"}, observe("o8'")],
        [hypothesize("h1", "o7", "o8", "o8'")],
        [hypothesize("h2", "o8"), support("h1", inline("e6"))],
        [observe("o9"), undermine("h2", "o9")],
        [],
        [revise("h2", "o9")],
        [],
        [hypothesize("h3", "o5", "o6", "o9", explains=("q2",))],
        [hypothesize("h4", "h3"), revise("h2", "h4")],
        [
            support("h4", inline("e13", "o6")),
            resolve("h4", subsumes=["h1", "h3"], answers=["q1"]),
        ],
    ]
    return [statement(n, *operations) for n, operations in enumerate(turns, start=1)]


def test_incident_links_and_standings() -> None:
    """After turn 13 the incident holds exactly the links and standings the paper gives it."""
    m, _ = heard(*incident())
    assert dict(m.records["h1"].links) == {
        "o7": "premise",
        "o8": "premise",
        "o8'": "premise",
        "e6": "corroboration",
        "h4": "subsumption",
    }
    assert m.records["h4"].links == (("h3", "premise"), ("e13", "corroboration"))
    assert m.records["h3"].links[-1] == ("h4", "subsumption")
    assert m.records["h2"].standing == "abandoned"
    assert [c.turn for c in m.records["h2"].changes] == [7, 9]
    assert m.attacks == {("o9", "h2"), ("h4", "h2")}
    assert m.records["h4"].standing == "resolved"
    assert ask.open_problems(m) == []


def test_incident_closure_is_right_four_times_and_one_step_once() -> None:
    """The closure answers all four retractions over h1..h4; one step answers exactly one."""
    m, _ = heard(*incident())
    hypotheses = {"h1", "h2", "h3", "h4"}
    gold = {
        "o8": {"h1", "h2"},
        "o9": {"h1", "h3", "h4"},
        "o6": {"h1", "h3", "h4"},
        "o5": {"h1", "h3", "h4"},
    }
    assert {o: ask.affected_closure(m, [o]) & hypotheses for o in gold} == gold
    right = [o for o in gold if ask.affected(m, [o]) & hypotheses == gold[o]]
    assert right == ["o8"]


def test_a_withdrawal_reports_what_rested_on_it() -> None:
    """An impact lists direct and transitive dependents, those standing, and lost decisions."""
    _, events = heard(
        statement(1, observe("a"), hypothesize("b", "a"), observe("s")),
        statement(2, resolve("b", decision=inline("d", "s"))),
        statement(3, undermine("a", "s")),
        statement(4, revise("a", "s")),
    )
    turn, impact, *rest = events[2]
    assert turn["data"]["ungrounded"] == ["a", "b", "d"]
    assert impact["data"] == {
        "withdrawn": "a",
        "standing": "weakened",
        "cause": "undermine",
        "by": "s",
        "direct": ["b"],
        "transitive": ["b", "d"],
        "in_good_standing": ["b", "d"],
        "complete": True,
        "newly_ungrounded": ["b", "d"],
        "decisions": ["b", "d"],
        "tenant_id": "default",
        "conversation_id": "c",
        "turn": 3,
        "sequence": 3,
    }
    said = [(e["type"].split(".")[1], e["data"]["record"]) for e in rest]
    assert said == [
        ("verdict", "b"),
        ("verdict", "d"),
        ("ungrounded_alert", "b"),
        ("ungrounded_alert", "d"),
    ]
    assert [e["type"] for e in events[3]] == ["standfast.turn.v1"]


def test_failures_name_the_first_fall_and_the_smallest_shortest_path() -> None:
    """A failing record keeps its first fall, and ties between shortest paths go to smaller ids."""
    _, events = heard(
        statement(1, observe("z"), observe("b", "z"), observe("a", "z"), observe("w")),
        statement(2, hypothesize("h", "b", "a")),
        statement(3, undermine("z", "w"), speaker="bob"),
        statement(4, revise("z", "a")),
        candidate(5, [{"record": "h"}, {"records": ["w", "b"]}, {"record": "no"}, {}]),
    )
    verdicts = [e["data"] for e in events[4] if e["type"] == "standfast.verdict.v1"]
    cause = {"op": "undermine", "by": "w", "speaker": "bob"}
    fallen = {"record": "z", "standing": "abandoned", "since_turn": 3, "cause": cause}
    assert verdicts[0]["failures"] == [{**fallen, "path": ["h", "a", "z"], "path_omitted": 0}]
    assert verdicts[1]["failures"] == [{**fallen, "path": ["b", "z"], "path_omitted": 0}]
    assert [v["reason"] for v in verdicts] == ["withdrawn_support"] * 2 + ["no_record"] * 2
    assert [v["grade"] for v in verdicts] == ["ungrounded"] * 4
    assert len(events[4]) == 8


def test_losing_corroboration_keeps_the_outcome_and_lowers_the_voice() -> None:
    """A lost second piece of evidence leaves an ungrounded claim with the milder grade."""
    m, events = heard(
        statement(1, observe("a"), hypothesize("h", "a"), observe("x")),
        statement(2, support("h", inline("e"))),
        statement(3, revise("e", "x")),
        candidate(4, [{"record": "h"}]),
    )
    verdict, alert = (e["data"] for e in events[3])
    assert (verdict["outcome"], verdict["grade"]) == ("ungrounded", "corroboration_lost")
    assert alert["severity"] == "warning"
    assert m.records["h"].standing == "active"


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (observe("a"), "duplicate_record"),
        (observe("q"), "duplicate_record"),
        (observe("n", "n"), "unknown_reference"),
        (observe("n", "q"), "unknown_reference"),
        (observe("n", inline("n")), "duplicate_record"),
        (observe("n", inline("m", "m")), "unknown_reference"),
        (observe("n", inline("m"), inline("m")), "duplicate_record"),
        (observe("n", inline("m"), "m"), None),
        (observe("n", "m", inline("m")), "unknown_reference"),
        (hypothesize("n", explains=("n",)), "unknown_reference"),
        (hypothesize("n", explains=("q", "a")), None),
        (support("q", "a"), "unknown_reference"),
        (support("a", "a"), "self_reference"),
        (support("gone", "gone"), "self_reference"),
        (support("gone", "no"), "target_abandoned"),
        (support("weak", "gone"), "evidence_not_in_good_standing"),
        (support("weak", "a"), None),
        (undermine("gone", "a"), "target_abandoned"),
        (undermine("done", "no"), "target_resolved"),
        (undermine("weak", "gone"), None),
        (revise("gone", "gone2"), "unknown_reference"),
        (revise("gone", "weak"), None),
        (resolve("weak"), "target_not_in_good_standing"),
        (resolve("done"), None),
        (resolve("a", subsumes=["a"]), "self_reference"),
        (resolve("a", premises=["a"]), "self_reference"),
        (resolve("a", premises=["a"], decision=inline("d")), None),
        (resolve("a", premises=["d"], decision=inline("d")), "unknown_reference"),
        (resolve("a", premises=["p"], decision=inline("d", inline("p"))), None),
        (resolve("a", premises=[inline("p")], decision=inline("d", "p")), "unknown_reference"),
        (resolve("a", premises=["no"], decision=inline("d", inline("a"))), "duplicate_record"),
        (resolve("a", subsumes=["no"], decision=inline("a")), "unknown_reference"),
        (resolve("a", decision=inline("done"), premises=["no"]), "duplicate_record"),
        (resolve("a", answers=["q", "done"]), None),
        (resolve("a", answers=["no"]), "unknown_reference"),
        (question("a"), "duplicate_record"),
        (question("r", "q", "a"), None),
        (question("r", "r"), "unknown_reference"),
    ],
)
def test_the_first_failing_check_names_the_code(operation: Json, code: str | None) -> None:
    """Each precondition has its code, and the checks come in the specified order."""
    _, events = heard(
        statement(1, *(observe(name) for name in ("a", "weak", "gone", "done")), question("q")),
        statement(2, undermine("weak", "a"), revise("gone", "a"), resolve("done")),
        statement(3, operation),
    )
    assert codes(events[1]) == []
    assert codes(events[2]) == ([] if code is None else [(0, code)])


def test_operations_are_applied_in_their_fixed_order() -> None:
    """A record may be cited by an operation that stands before it in the list."""
    m, events = heard(statement(1, hypothesize("h", "o"), observe("o"), observe("o")))
    assert events[0][0]["data"]["applied"] == [0, 1]
    assert codes(events[0]) == [(2, "duplicate_record")]
    assert set(m.records) == {"h", "o"}


def test_awareness_follows_the_hearers() -> None:
    """Everyone is aware only after an expansion to everyone; one agent after either."""

    def expand(*agents: str) -> Json:
        listed = list(agents) or None
        return {"op": "expand_awareness", "proposition": "p", "agents": listed}

    m, events = heard(
        statement(1, expand("ann"), expand("ann"), expand("bob", "ann")),
        statement(2, expand("bob"), expand(), audience=["ann", "bob"]),
        statement(3, expand("eve"), audience=["ann"]),
        statement(4, expand(), expand("eve")),
        statement(5, observe("o"), audience=["bob"]),
    )
    assert codes(events[0]) == [(1, "already_aware")]
    assert codes(events[1]) == [(0, "already_aware"), (1, "already_aware")]
    assert codes(events[2]) == [(0, "already_aware")]
    assert codes(events[3]) == [(1, "already_aware")]
    assert ask.awareness(m) == {EVERYONE: ["p"], "ann": ["o"], "bob": ["o"]}


def test_problems_reopen_when_their_answer_falls() -> None:
    """A question is open again once no record that answers it stands."""
    said = [
        statement(1, observe("x"), question("q")),
        statement(2, hypothesize("h", explains=("q",))),
        statement(3, revise("h", "x")),
    ]
    assert [ask.open_problems(heard(*said[:n])[0]) for n in (1, 2, 3)] == [["q"], [], ["q"]]


def test_commitments_end_only_by_their_own_speaker() -> None:
    """Another speaker's revision leaves the commitment; one's own ends it, even repeated."""
    said = [
        statement(1, observe("a"), observe("b"), speaker="ann"),
        statement(2, revise("a", "b"), speaker="bob"),
        statement(3, revise("a", "b"), speaker="ann"),
    ]
    assert [ask.commitments(heard(*said[:n])[0]) for n in (2, 3)] == [
        {"ann": ["a", "b"]},
        {"ann": ["b"]},
    ]


def test_turns_sequences_and_coverage() -> None:
    """Only statements take a turn; failed ones leave a gap; a repeated utterance is nothing."""
    _, events = heard(
        {"conversation_id": "c", "utterance_id": "s", "speaker": "ann", "kind": "setup"},
        statement(1, operations=None),
        statement(1, observe("a")),
        candidate(2, None),
        candidate(3, []),
        statement(4, observe("a")),
    )
    places = [[(e["data"]["turn"], e["data"]["sequence"]) for e in group] for group in events]
    assert places == [[], [(1, 2)], [], [(1, 3)], [(1, 4)], [(2, 5)]]
    assert events[1][0]["data"]["failed"] is True
    outcomes = [(e[0]["data"]["outcome"], e[0]["data"]["reason"]) for e in events[3:5]]
    assert outcomes == [("unverified", "no_claims_given"), ("no_claims", None)]
    assert events[3][0]["data"]["coverage"] == {
        "complete": False,
        "missing_turns": [1],
        "missing_count": 1,
    }
