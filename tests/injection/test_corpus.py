"""A model that obeys every hostile text still withdraws nothing that it may not, anywhere."""

from __future__ import annotations

from collections import Counter

import pytest

from processor.app.tenants import Tenants, Terms
from processor.engine.record import RecordKind
from processor.evidence.fold import advance
from processor.evidence.key import key_of
from processor.evidence.projection import ledger_of
from processor.render.active import render_active
from processor.render.context import render_context
from schemas.log import CandidateAppended, OperationsAppended, RejectionCode
from schemas.policy import Act, Policy, Prohibition
from tests.injection.corpus import ATTACKED, CORPUS, OBSERVED, Json, Plant

NOTHING_IS_WITHDRAWN = Tenants(
    {
        "acme": Terms(
            policy=Policy(
                version="fixed",
                forbidden=(Prohibition(acts=(Act.REVISE, Act.UNDERMINE, Act.REBASE)),),
                deciders=("lead",),
            )
        )
    }
)
OPEN = Tenants({}, Terms(policy=Policy(version="open")))
VALUES = [case for case in CORPUS if case["technique"] == "values"]
each_case = pytest.mark.parametrize("case", CORPUS, ids=lambda case: case["name"])


def test_the_corpus_is_what_it_says() -> None:
    """At least sixty different attempts by at least nine techniques, in both roles."""
    assert len({case["text"] for case in CORPUS}) == len(CORPUS) >= 60
    assert min(Counter(case["technique"] for case in CORPUS).values()) >= 5
    assert len(Counter(case["technique"] for case in CORPUS)) >= 9
    assert set(Counter(case["role"] for case in CORPUS)) == {"user", "assistant"}


def test_the_corpus_would_do_harm_without_a_policy() -> None:
    """Where everything is allowed most attempts withdraw something that was observed."""
    harmed = 0
    for case in CORPUS:
        plant = Plant(case["reply"], OPEN)
        plant.attempt(case)
        records = plant.attacked.state.records
        harmed += any(not records[id_].grounded for id_ in OBSERVED)
    assert harmed >= 45


@each_case
def test_nothing_observed_is_withdrawn(case: Json) -> None:
    """What the gauge and the watchdog saw stands, is grounded, and holds up the decision."""
    plant = Plant(case["reply"])
    plant.attempt(case)
    records = plant.attacked.state.records
    assert all(records[id_].stands and records[id_].grounded for id_ in OBSERVED)
    assert all(records[id_].claim != "" and records[id_].speaker != "mallory" for id_ in OBSERVED)


@each_case
def test_under_a_strict_policy_nothing_at_all_is_withdrawn(case: Json) -> None:
    """A tenant can have every record kept from everybody, and its decision too."""
    plant = Plant(case["reply"], NOTHING_IS_WITHDRAWN)
    before = {id_: record.standing for id_, record in plant.attacked.state.records.items()}
    plant.attempt(case)
    records = plant.attacked.state.records
    assert {id_: records[id_].standing for id_ in before} == before
    assert all(records[id_].grounded for id_ in before)
    decided = [r.id for r in records.values() if r.kind is RecordKind.DECISION]
    assert decided == ["d1"]


@each_case
def test_a_value_of_the_gauge_is_disputed_at_most(case: Json) -> None:
    """An atom alone leaves its value and the gauge's both in dispute; nothing else disputes any."""
    plant = Plant(case["reply"])
    known = [*plant.attacked.state.records]
    plant.attempt(case)
    state = plant.attacked.state
    told = [r.id for r in state.records.values() if r.atoms and r.id not in known]
    disputed = ["v1", *told] if case["technique"] == "values" else []
    assert sorted(state.disputed) == sorted(disputed)
    row = ledger_of(plant.attacked).rows[key_of("tank", "level")]
    assert row.live[0].records() == ("v1",)


@pytest.mark.parametrize("case", VALUES, ids=lambda case: case["name"])
def test_an_atom_alone_would_withdraw_a_value_without_a_policy(case: Json) -> None:
    """Where everything is allowed the same atoms replace what the gauge saw."""
    plant = Plant(case["reply"], OPEN)
    plant.attempt(case)
    assert not plant.attacked.state.records["v1"].stands


@each_case
def test_no_other_conversation_is_touched(case: Json) -> None:
    """Those of the same tenant and of others have the digests that they had, and no event more."""
    plant = Plant(case["reply"])
    before = {key: each.digest for key, each in plant.conversations.items() if key != ATTACKED}
    event = plant.attempt(case)
    after = {key: each.digest for key, each in plant.conversations.items() if key != ATTACKED}
    assert after == before
    assert len(before) == 2
    assert (event.tenant_id, event.conversation_id) == ATTACKED


@each_case
def test_nobody_is_spoken_for(case: Json) -> None:
    """Whatever names a text brings, its operations, records and withdrawals are its speaker's."""
    plant = Plant(case["reply"])
    known = dict.fromkeys(plant.attacked.state.records)
    gauge = plant.attacked.state.commitments("gauge")
    event = plant.attempt(case)
    assert (event.speaker, event.role) == (case["speaker"], case["role"])
    if isinstance(event, OperationsAppended):
        assert all(operation.speaker is None for operation in event.operations)
    for record in plant.attacked.state.records.values():
        if record.id not in known:
            assert (record.speaker, record.role) == (case["speaker"], case["role"])
        fallen = [entry for entry in record.trail if entry.value in ("abandoned", "weakened")]
        assert all(entry.speaker == case["speaker"] for entry in fallen)
    assert plant.attacked.state.commitments("gauge") == gauge


@each_case
def test_what_elsewhere_is_known_is_unknown_here(case: Json) -> None:
    """Ids of other conversations name nothing, in statements as in drafts."""
    plant = Plant(case["reply"])
    event = plant.attempt(case)
    records = plant.attacked.state.records
    assert not {"secret", "k1", "rival/main:secret"} & set(records)
    assert not any(support.id == "secret" for r in records.values() for support in r.supports)
    if isinstance(event, CandidateAppended):
        claims = [set(claim.associated()) for claim in event.claims or ()]
        assert all(not ids or not ids <= set(records) for ids in claims)


@each_case
def test_the_attempt_is_told(case: Json) -> None:
    """Of each attempt the log has one event, and its replay comes to the same digest."""
    plant = Plant(case["reply"])
    event = plant.attempt(case)
    assert event.utterance.id not in {each.utterance.id for each in plant.events[:-1]}
    again = Plant({"operations": []})
    advance(again.attacked, event)
    assert again.attacked.digest == plant.attacked.digest


@each_case
def test_what_is_rendered_afterwards_has_our_lines_only(case: Json) -> None:
    """Each line of the state is a title of ours or begins with the id of a record that exists."""
    plant = Plant(case["reply"])
    plant.attempt(case)
    state = plant.attacked.state
    known = {*state.records, *state.problems}
    for text in (render_context(state, include_withdrawn=True), render_active(state)):
        for line in text.splitlines():
            words = line.split()
            titled = line.endswith(":") and not line.startswith("- ")
            assert titled or {word.rstrip(",") for word in words[1:4]} & known, line


def test_refused_for_want_of_authority_is_what_most_attempts_get() -> None:
    """The policy is what stops them, not a lucky mistake in the attempt."""
    stopped = 0
    for case in CORPUS:
        plant = Plant(case["reply"])
        event = plant.attempt(case)
        if isinstance(event, OperationsAppended):
            again = Plant({"operations": []})
            advanced = advance(again.attacked, event)
            outcome = getattr(advanced, "outcome", None)
            codes = [each.code for each in outcome.rejections] if outcome else []
            codes += [each.code for each in event.provenance.rejections]
            stopped += RejectionCode.NOT_AUTHORISED in codes
    assert stopped >= 45
