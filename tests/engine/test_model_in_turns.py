"""What turns do to the plausibility model, and what it says of operations with formulas."""

from __future__ import annotations

import pytest

from processor.engine.digest import state_digest
from processor.engine.plausibility.formula import to_wire
from processor.engine.plausibility.syntax import parse
from processor.engine.retraction import why
from processor.engine.snapshot import dump, load
from processor.engine.turn import dry_run
from processor.evidence.fold import Folded, fold
from schemas.derived import Outcome, TurnEvent, VerdictEvent
from schemas.log import OperationsAppended
from schemas.operations import Hypothesize, Observe, Revise
from tests.engine.given import (
    Given,
    Json,
    hypothesize,
    inline,
    observe,
    resolve,
    revise,
    support,
    undermine,
)


def holds(given: Given, formula: str) -> bool:
    """Whether the formula is true at every world that is left."""
    return given.conversation.state.model.holds(parse(formula))


def outcome(given: Given, record: str) -> Outcome:
    """The verdict on a draft that rests on one record."""
    verdict = given.utter(kind="candidate", claims=[{"record": record}])[0]
    assert isinstance(verdict, VerdictEvent)
    return verdict.outcome


def consensual(target: str, **fields: object) -> Json:
    """A record settled on by everybody."""
    return {"op": "resolve", "target": target, "mode": "consensual", **fields}


def test_an_observation_announces_its_id_and_its_content() -> None:
    """Everybody knows both afterwards, and that everybody knows."""
    given = Given()
    given.say(observe("o", formula="p & q"))
    assert holds(given, "K_ann (o & p & q)")
    assert holds(given, "C_{ann,bob} p")


def test_an_impossible_observation_is_kept_and_disputed_with_what_it_contradicts() -> None:
    """Nothing is refused; a draft on either side abstains until one side is revised."""
    given = Given()
    given.say(
        observe("o1", formula="p"), observe("o2", formula="p -> q"), observe("o3", formula="r")
    )
    turn = given.say(observe("o4", formula="~q"))
    assert turn.rejections == ()
    assert [note.code for note in turn.notes] == ["announcement_withheld"]
    state = given.conversation.state
    assert state.records["o4"].stands
    assert sorted(state.disputed) == ["o1", "o2", "o4"]
    assert holds(given, "q")
    assert [outcome(given, r) for r in ("o1", "o2", "o3", "o4")] == [
        Outcome.ABSTAIN,
        Outcome.ABSTAIN,
        Outcome.GROUNDED,
        Outcome.ABSTAIN,
    ]


@pytest.mark.parametrize("revised", ["o1", "o4"])
def test_a_revision_of_either_side_clears_the_dispute(revised: str) -> None:
    """Whoever gives in, the other side is no longer disputed."""
    given = Given()
    given.say(observe("o1", formula="p"))
    given.say(observe("o4", formula="~p"))
    assert sorted(given.conversation.state.disputed) == ["o1", "o4"]
    given.say(revise(revised, inline("n")))
    assert not given.conversation.state.disputed
    other = "o4" if revised == "o1" else "o1"
    assert outcome(given, other) is Outcome.GROUNDED


def test_observations_of_one_turn_can_contradict_each_other() -> None:
    """The later one in the list is withheld, the earlier one announced."""
    given = Given()
    given.say(observe("o1", formula="p"), observe("o2", formula="~p"))
    assert sorted(given.conversation.state.disputed) == ["o1", "o2"]
    assert holds(given, "p")


def test_observations_of_one_turn_are_evaluated_before_any_of_them() -> None:
    """Said at once, 'I do not know p' and 'p' are both true; one after the other, not."""
    given = Given()
    given.say(observe("a", formula="~K_bob p"), observe("b", formula="p"))
    assert not given.conversation.state.disputed
    given = Given()
    given.say(observe("b", formula="p"))
    given.say(observe("a", formula="~K_bob p"))
    assert sorted(given.conversation.state.disputed) == ["a", "b"]


def test_an_unforeseen_observation_is_a_problem_until_it_is_explained() -> None:
    """It reopens when what explained it is given up; a foreseen one poses none."""
    given = Given()
    given.say(observe("o", formula="p"))
    state = given.conversation.state
    assert [problem.id for problem in state.open_problems()] == ["o"]
    given.say(hypothesize("h", explains=["o"], formula="cause & (cause -> p)"))
    assert state.open_problems() == ()
    given.say(revise("h", inline("n")))
    assert [problem.id for problem in state.open_problems()] == ["o"]
    given.say(observe("again", formula="p"))
    assert [problem.id for problem in state.open_problems()] == ["o"]


def test_a_bare_observation_surprises_nobody() -> None:
    """Without a formula there is nothing to be surprised at."""
    given = Given()
    given.say(observe("o"))
    assert given.conversation.state.open_problems() == ()


@pytest.mark.parametrize(
    ("formula", "explains", "code"),
    [
        ("cause & (cause -> p)", ["o"], None),
        ("cause -> p", ["o"], "not_explanatory"),
        ("~r", [], "inconsistent_with_model"),
        ("r", ["k"], None),
        ("unrelated", [], None),
        ("(a & b & c) | ~(a & b & c)", ["o"], "not_explanatory"),
    ],
)
def test_a_hypothesis_must_be_new_possible_and_explain(
    formula: str, explains: list[str], code: str | None
) -> None:
    """It is tested in the model without what it explains."""
    given = Given()
    given.say(observe("o", formula="p"), observe("k", formula="r"))
    refused = given.refused(hypothesize("h", formula=formula, explains=explains))
    assert refused == ([] if code is None else [(0, code)])


def test_what_is_believed_already_is_no_hypothesis() -> None:
    """Its own variable would have to be believed too, which only an earlier mention can bring."""
    given = Given()
    given.say(observe("o", formula="h & p"))
    assert given.refused(hypothesize("h", formula="p")) == [(0, "already_believed")]


def test_undermining_takes_belief_and_revising_takes_knowledge() -> None:
    """Belief in the contrary after undermining, knowledge only after a negating revision."""
    given = Given()
    given.say(observe("o", formula="p"))
    given.say(hypothesize("h", explains=["o"], formula="c & (c -> p)"))
    assert holds(given, "B_ann h & ~K_ann h")
    given.say(undermine("h", inline("e"), contrast=True))
    assert holds(given, "B_ann ~h & ~K_ann ~h")
    given.say(revise("h", inline("n"), negates=True))
    assert holds(given, "K_ann ~h")


def test_giving_up_a_record_takes_out_what_it_brought() -> None:
    """The content of an abandoned observation is no longer known; other content is."""
    given = Given()
    given.say(observe("o1", formula="p"), observe("o2", formula="q"))
    given.say(revise("o1", inline("n")))
    assert not holds(given, "p")
    assert not holds(given, "~p")
    assert holds(given, "K_ann q")


def test_giving_up_the_evidence_takes_back_what_it_undermined() -> None:
    """The downgrade is tagged with its evidence, not with its target."""
    given = Given()
    given.say(hypothesize("h"), undermine("h", inline("e"), contrast=True))
    assert holds(given, "B_ann ~h")
    given.say(revise("e", inline("n")))
    assert holds(given, "B_ann h")


def test_a_record_revised_in_the_turn_that_brings_it_leaves_nothing_in_the_model() -> None:
    """What the turn appended for it is dropped at the revision."""
    given = Given()
    given.say(observe("o", formula="p"), revise("o", inline("n")))
    assert not holds(given, "p")
    assert not holds(given, "o")


def test_a_turn_may_propose_what_its_own_revision_makes_possible() -> None:
    """Revisions that will be accepted are contracted before the turn's hypotheses are tested."""
    given = Given()
    given.say(observe("o", formula="~p"))
    assert given.refused(hypothesize("h", formula="p")) == [(0, "inconsistent_with_model")]
    turn = given.say(hypothesize("g", formula="p"), revise("o", "g"))
    assert turn.rejections == ()
    assert holds(given, "B_ann g")


def test_a_revision_that_is_refused_makes_nothing_possible() -> None:
    """A hypothesis that leans on a refused revision of its turn is refused too."""
    given = Given()
    given.say(observe("o", formula="~p"))
    assert given.refused(hypothesize("g", formula="p"), revise("o", "ghost")) == [
        (0, "inconsistent_with_model"),
        (1, "unknown_reference"),
    ]
    assert holds(given, "K_ann ~p")
    assert given.conversation.state.records["o"].stands


def test_a_negation_that_is_impossible_is_skipped_and_said() -> None:
    """Another announcement holds the target true, so its negation would leave no world."""
    given = Given()
    given.say(observe("o", formula="p"), observe("k", formula="o"))
    turn = given.say(revise("o", inline("n"), negates=True))
    assert [note.code for note in turn.notes] == ["negation_skipped"]
    assert holds(given, "o")
    assert not given.conversation.state.records["o"].stands


def test_consent_on_what_is_impossible_is_refused_and_authority_is_not() -> None:
    """A consensual resolution announces its target; an authoritative one announces nothing."""
    given = Given()
    given.say(hypothesize("h", formula="p"))
    given.say(observe("o", formula="~h"))
    assert given.refused(consensual("h")) == [(0, "inconsistent_with_model")]
    assert given.refused(resolve("h")) == []


def test_support_is_conservative_unless_it_is_specific() -> None:
    """A conservative upgrade promotes the best worlds only, a radical one all of them."""
    for specific, expected in ((False, False), (True, True)):
        given = Given()
        given.say(hypothesize("g", formula="q"), hypothesize("h", formula="p"))
        given.say(undermine("h", inline("e1"), contrast=True))
        given.say(support("h", inline("e2"), specific=specific))
        assert holds(given, "B_ann h")
        given.say(undermine("g", inline("e3"), contrast=True))
        assert holds(given, "B_ann ~g")
        assert holds(given, "B_ann h") is expected


def test_a_private_utterance_is_private() -> None:
    """Who did not hear it believes that nothing happened."""
    given = Given()
    given.say(observe("o", formula="p"), audience=["ann", "bob"])
    assert holds(given, "K_ann p & K_bob p & K_ann K_bob p")
    assert not holds(given, "K_eve p")
    assert holds(given, "~K_eve p & ~K_eve K_ann p")


def test_who_speaks_hears_it_too() -> None:
    """A speaker who is not named in the audience is part of it."""
    given = Given()
    given.say(observe("o", formula="p"), audience=["bob"])
    assert holds(given, "K_ann p & K_bob K_ann p")


def test_common_knowledge_that_is_not_defined_is_a_refusal() -> None:
    """A formula that asks for it where somebody missed something is refused, with the reason."""
    given = Given()
    given.say(observe("o", formula="p"), audience=["ann", "bob"])
    turn = given.say(hypothesize("h", formula="C_{ann,eve} p"))
    assert [rejection.code for rejection in turn.rejections] == ["inconsistent_with_model"]
    assert "common knowledge" in turn.rejections[0].reason


def test_the_largest_refusals_fit_the_contract() -> None:
    """Long names and long lists in a refusal are cut to the bounds, and crash nothing."""
    given = Given()
    given.say(observe("o", formula="p"), audience=["ann"])
    group = ",".join(f"{number}" + "x" * 120 for number in range(64))
    (rejection,) = given.say(hypothesize("h", formula=f"C_{{{group}}} p")).rejections
    assert len(rejection.reason) == 4_096
    records = [f"r{number}" for number in range(512)]
    for start in range(0, 512, 256):
        given.say(*(observe(record) for record in records[start : start + 256]))
    (rejection,) = given.say(hypothesize("h", formula="p & ~p", explains=records)).rejections
    assert len(rejection.records) == 512


def test_hearing_a_formula_makes_aware_of_its_variables() -> None:
    """Explicit knowledge needs knowledge and awareness; nobody is aware of what was never said."""
    given = Given()
    given.say(observe("o", formula="p"))
    assert holds(given, "X_ann p")
    assert holds(given, "K_ann (p | r) & ~X_ann (p | r)")


def test_a_log_with_text_formulas_folds_without_a_crash() -> None:
    """Text in a log event is read; text that is no formula refuses its operation alone."""
    given = Given()
    given.say(observe("o"))
    event = OperationsAppended.model_validate(
        {
            "type": "standfast.operations.v1",
            "tenant_id": "default",
            "conversation_id": "c",
            "sequence": 2,
            "turn": 2,
            "rules_version": 1,
            "utterance": {"id": "other", "digest": "0" * 64},
            "speaker": "ann",
            "role": "user",
            "at": "2026-03-01T02:31:00Z",
            "provenance": {"interpreter": "other"},
            "operations": [observe("x", formula="p & & q"), observe("y", formula="p & q")],
        },
        strict=False,
    )
    folded = fold(given.conversation, event)
    assert isinstance(folded, Folded)
    turn = folded.events[0]
    assert isinstance(turn, TurnEvent)
    assert [rejection.index for rejection in turn.rejections] == [0]
    assert holds(given, "K_ann (p & q)")


def disputed() -> Given:
    """A conversation with an open dispute and one that is over."""
    given = Given()
    given.say(observe("o1", formula="p"), observe("o2", formula="q"))
    given.say(observe("o3", formula="~p"), observe("o4", formula="~q"))
    given.say(revise("o4", inline("n")))
    assert sorted(given.conversation.state.disputed) == ["o1", "o3"]
    return given


def test_a_snapshot_keeps_disputes_formulas_and_awareness() -> None:
    """Loaded again, the conversation has the same bytes and digest, and answers the same."""
    given = disputed()
    loaded = load(dump(given.conversation))
    assert dump(loaded) == dump(given.conversation)
    assert loaded.state_digest() == given.conversation.state_digest()
    assert loaded.state_digest() == state_digest(loaded.state)
    assert loaded.state.disputed == given.conversation.state.disputed
    assert loaded.state.model.holds(parse("X_ann (p & q)"))


def test_a_dry_run_of_disputes_and_revisions_leaves_everything_untouched() -> None:
    """What a turn opens, clears, contracts and appends is all taken back."""
    given = disputed()
    before = dump(given.conversation)
    operations = [
        Observe(op="observe", record="x", claim="x", formula=to_wire(parse("~q & r"))),
        Revise(op="revise", target="o3", by="o1", negates=True),
        Hypothesize(op="hypothesize", record="h", claim="h", formula=to_wire(parse("s"))),
    ]
    outcome = dry_run(given.conversation.state, 4, "ann", None, operations)
    assert outcome.applied == (0, 1, 2)
    assert [note.code for note in outcome.notes] == ["announcement_withheld"]
    assert dump(given.conversation) == before
    assert given.conversation.state_digest() == state_digest(given.conversation.state)
    assert sorted(given.conversation.state.disputed) == ["o1", "o3"]


def test_why_lists_the_support_tree_once() -> None:
    """Depth first in the order of the links; what was listed is not gone through again."""
    given = Given()
    given.say(observe("a"), observe("b", "a"), observe("c", "b", "a"))
    given.say(resolve("c", subsumes=["a"]))
    steps = why(given.conversation.state.records["c"])
    assert [(step.depth, step.record.id, step.repeated) for step in steps] == [
        (0, "c", False),
        (1, "b", False),
        (2, "a", False),
        (3, "c", True),
        (1, "a", True),
    ]
