"""Who may do what: the default policy, a conversation's own, its tenant's, and no way around."""

from __future__ import annotations

from typing import Any

import pytest

from processor.app.tenants import Tenants, Terms
from processor.engine.digest import state_digest
from processor.engine.rules_version import RULES_V1
from processor.engine.snapshot import dump, load
from schemas.derived import Standing
from schemas.policy import DEFAULT_POLICY, Act, Policy, Prohibition
from tests.engine.given import (
    Given,
    expand,
    hypothesize,
    inline,
    observe,
    resolve,
    revise,
    support,
    undermine,
)

Json = dict[str, Any]
REFUSED = [(0, "not_authorised")]


def measured(role: str = "tool") -> Given:
    """A tool has observed `o`, and brought `e` as evidence for it."""
    given = Given()
    given.say(observe("o"), support("o", inline("e")), speaker="sensor", role=role)
    given.say(observe("mine"), hypothesize("guess"), role="user")
    return given


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("source", ["tool", "system"])
@pytest.mark.parametrize(
    "operation",
    [
        revise("o", "mine"),
        revise("o", inline("n")),
        revise("e", "mine", negates=True),
        undermine("o", "mine"),
        resolve("guess", subsumes=["o"]),
        resolve("guess", subsumes=["mine", "e"], mode="consensual"),
        resolve("o", premises=["mine"]),
    ],
)
def test_what_a_tool_or_the_system_observed_is_not_withdrawn_by_others(
    role: str, source: str, operation: Json
) -> None:
    """Neither given up, nor weakened, nor made to rest on what its opponent can withdraw."""
    given = measured(source)
    before = given.conversation.state_digest()
    assert given.refused(operation, role=role) == REFUSED
    assert given.conversation.state_digest() == before


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize(
    "operation",
    [
        support("o", "mine"),
        resolve("o"),
        resolve("o", decision=inline("d"), premises=["mine"]),
        revise("mine", "o"),
        undermine("guess", "o"),
        expand("p", reclassifies="o"),
        observe("o2", "o"),
    ],
)
def test_everything_else_stays_open(role: str, operation: Json) -> None:
    """One may rest on it, corroborate it, settle on it, decide on it, and attack other records."""
    assert measured().refused(operation, role=role) == []


@pytest.mark.parametrize("role", ["tool", "system", "operator"])
def test_who_is_neither_user_nor_assistant_may_withdraw_it(role: str) -> None:
    """The default policy names two roles and leaves all others free."""
    assert measured().refused(revise("o", inline("n")), role=role) == []


def test_naming_another_speaker_lends_no_authority() -> None:
    """An assistant that speaks for the sensor is an assistant still, and so is what it brings."""
    given = measured()
    spoken = {"speaker": "sensor"}
    assert given.refused(revise("o", "mine", **spoken), role="assistant") == REFUSED
    given.say(observe("forged", **spoken), role="assistant")
    record = given.conversation.state.records["forged"]
    assert (record.speaker, record.role) == ("sensor", "assistant")
    assert given.refused(revise("forged", "mine"), role="user") == []


def test_naming_a_user_takes_no_authority_away() -> None:
    """What a tool reports for somebody has the tool's authority, and so has what it adds."""
    given = measured()
    given.say(observe("o2", speaker="ann"), speaker="sensor", role="tool")
    assert given.refused(revise("o2", "mine"), speaker="ann", role="user") == REFUSED
    assert given.refused(revise("o", "mine", speaker="ann"), speaker="sensor", role="tool") == []


def test_a_declared_role_lends_no_authority() -> None:
    """A setup may call an agent a tool; what counts is the role in which an utterance was said."""
    given = Given()
    given.utter(kind="setup", agents=[{"id": "ann", "role": "system"}])
    given.say(observe("o"), speaker="sensor", role="tool")
    assert given.refused(revise("o", inline("n")), role="user") == REFUSED


def test_the_structure_is_looked_at_before_authority_and_the_model_after() -> None:
    """Unknown ids, self reference, standing and evidence come first, awareness and belief later."""
    given = measured()
    assert given.refused(revise("ghost", "mine")) == [(0, "unknown_reference")]
    assert given.refused(revise("o", "ghost")) == [(0, "unknown_reference")]
    assert given.refused(revise("o", "o")) == [(0, "self_reference")]
    given.utter(operations=[undermine("o", "e")], role="tool", speaker="sensor")
    assert given.refused(resolve("o", premises=["mine"])) == [(0, "target_not_in_good_standing")]
    strict = Given()
    forbidden = [{"acts": ["reclassify"]}, {"acts": ["support", "resolve"]}]
    strict.utter(kind="setup", policy={"version": "p", "forbidden": forbidden})
    strict.say(observe("a"), observe("b", formula="p"), observe("c", formula="~p"), expand("q"))
    assert strict.refused(expand("q", reclassifies="a")) == REFUSED
    assert strict.refused(expand("q")) == [(0, "already_aware")]
    assert strict.refused(support("a", "b")) == REFUSED
    strict.say(revise("b", "a"))
    assert strict.refused(support("a", "b")) == [(0, "evidence_not_in_good_standing")]
    assert strict.refused(resolve("c", mode="consensual")) == REFUSED


def test_a_refused_withdrawal_leaves_the_rest_of_its_turn_alone() -> None:
    """The turn event says which operation, by which policy, in which role."""
    given = measured()
    turn = given.say(observe("x"), revise("o", inline("n")), observe("y", "x"), role="assistant")
    assert turn.applied == (0, 2)
    (rejection,) = turn.rejections
    assert rejection.records == ("o",)
    assert rejection.reason == (
        "the policy default-1 does not let the role assistant revise a record of kind observation "
        "introduced in the role tool"
    )
    assert "n" not in given.conversation.state.records


def test_only_the_named_roles_decide() -> None:
    """Resolving by authority is for the deciders, consent for everybody; none named is nobody."""
    given = Given()
    given.utter(kind="setup", policy={"version": "p", "deciders": ["lead"]})
    given.say(observe("a"), observe("b"))
    assert given.refused(resolve("a"), role="user") == REFUSED
    assert given.refused(resolve("a", mode="consensual"), role="user") == []
    assert given.refused(resolve("b", decision=inline("d")), role="lead") == []
    nobody = Given()
    nobody.utter(kind="setup", setup={"policy": {"version": "p", "deciders": []}})
    nobody.say(observe("a"))
    assert nobody.refused(resolve("a"), role="system") == REFUSED


def test_a_policy_may_protect_any_kind_from_anybody() -> None:
    """Left out, roles, kinds and the role of introduction mean all of them."""
    given = Given()
    forbidden = [{"acts": ["revise"], "kinds": ["decision"]}]
    given.utter(kind="setup", policy={"version": "p", "forbidden": forbidden})
    given.say(observe("a"))
    given.say(resolve("a", decision=inline("d")))
    assert given.refused(revise("d", inline("n")), role="system") == REFUSED
    assert given.refused(revise("a", inline("n")), role="user") == []


def test_under_the_first_rules_nobody_asks_who_speaks() -> None:
    """Old events fold as they did, and what they introduced has no role that a policy names."""
    given = Given(rules_version=RULES_V1)
    given.say(observe("o"), observe("p"), role="tool", speaker="sensor")
    assert given.refused(revise("o", inline("n")), role="user") == []
    given.rules_version = RULES_V1 + 2
    assert given.conversation.state.records["p"].role is None
    assert given.refused(revise("p", inline("m")), role="user") == []
    given.say(observe("q"), role="tool", speaker="sensor")
    assert given.refused(revise("q", inline("k")), role="user") == REFUSED
    loaded = load(dump(given.conversation))
    assert dump(loaded) == dump(given.conversation)
    assert loaded.state_digest() == state_digest(given.conversation.state)


LOCKED = Policy(version="locked", forbidden=(Prohibition(acts=tuple(Act)),))


def test_a_tenants_policy_comes_with_the_first_event_and_with_every_change() -> None:
    """It stands in the log where it begins to hold, and decides from that event on."""
    given = Given()
    assert given.logged(operations=[observe("a")]).policy is None
    given.tenants = Tenants({"default": Terms(policy=LOCKED)})
    assert given.logged(operations=[revise("a", inline("n"))]).policy == LOCKED
    assert given.conversation.state.records["a"].standing is Standing.ACTIVE
    assert given.logged(operations=[observe("b")]).policy is None
    given.tenants = Tenants({"other": Terms(policy=LOCKED)})
    assert given.logged(operations=[revise("a", inline("n"))]).policy == DEFAULT_POLICY
    assert given.conversation.state.records["a"].standing is Standing.ABANDONED
    fresh = Given(tenants=Tenants({}, Terms(policy=LOCKED)))
    assert fresh.logged(kind="candidate", claims=[]).policy == LOCKED
    assert fresh.logged(text="nobody reads this").policy is None


def test_a_setup_brings_the_tenants_policy_or_its_own() -> None:
    """A conversation's own policy stays, whatever its tenant's becomes."""
    tenants = Tenants({"default": Terms(policy=LOCKED)})
    given = Given(tenants=tenants)
    assert given.logged(kind="setup").policy == LOCKED
    given.say(observe("a"))
    assert given.refused(revise("a", inline("n"))) == REFUSED
    own = Given(tenants=tenants)
    assert own.logged(kind="setup", policy={"version": "free"}).policy is None
    own.say(observe("a"), role="tool")
    assert own.refused(revise("a", inline("n"))) == []
    assert own.logged(operations=[observe("b")]).policy is None


def test_a_digest_that_was_asked_for_does_not_outlive_a_change_of_policy() -> None:
    """The tenant's policy, which no operation brings, is in the digest as soon as it is told."""
    given = Given()
    given.say(observe("a"))
    before = given.conversation.state_digest()
    given.tenants = Tenants({"default": Terms(policy=LOCKED)})
    given.logged(kind="candidate", claims=[])
    after = given.conversation.state_digest()
    assert before != after == state_digest(given.conversation.state)


def test_policies_are_part_of_the_state_and_its_bytes() -> None:
    """A snapshot keeps both, and two states that differ in them alone have different digests."""
    digests = []
    for tenants in (Tenants(), Tenants({}, Terms(policy=LOCKED))):
        for setup in ({}, {"policy": {"version": "free"}}):
            given = Given(tenants=tenants)
            given.utter(kind="setup", **setup)
            given.say(observe("a"), role="tool")
            conversation = given.conversation
            loaded = load(dump(conversation))
            assert loaded.state.own_policy == conversation.state.own_policy
            assert loaded.state.tenant_policy == conversation.state.tenant_policy
            assert loaded.state_digest() == state_digest(conversation.state)
            digests.append(loaded.state_digest())
    assert len(dict.fromkeys(digests)) == 3, "a policy of its own hides the tenant's"
