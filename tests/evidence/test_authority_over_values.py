"""A value is withdrawn only by who may revise the record that gave it."""

from __future__ import annotations

import pytest

from processor.engine.snapshot import dump, load
from processor.evidence.projection import ledger_of, made_up
from schemas.derived import Outcome, Standing
from tests.engine.given import Given
from tests.evidence.test_join import outcome, seen, standing, value_of


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("relation", ["supersedes", "refines"])
def test_what_a_tool_observed_is_contradicted_not_replaced(role: str, relation: str) -> None:
    """A user or an assistant who replaces a tool's value makes a dispute of it."""
    given = Given()
    given.say(seen("o1", "30 s"), speaker="probe", role="tool")
    given.say(seen("o2", "60 s", relation=relation), speaker="bob", role=role)
    assert standing(given, "o1") is Standing.ACTIVE
    assert outcome(given, "o1") is outcome(given, "o2") is Outcome.ABSTAIN
    assert value_of(given) == ["30 s", "60 s"]


def test_the_same_speaker_in_another_role_replaces_nothing_either() -> None:
    """Who spoke as a tool and speaks as a user now has the authority of a user."""
    given = Given()
    given.say(seen("o1", "30 s"), speaker="probe", role="tool")
    given.say(seen("o2", "60 s"), speaker="probe", role="user")
    assert standing(given, "o1") is Standing.ACTIVE
    assert value_of(given) == ["30 s", "60 s"]


def test_a_tool_replaces_what_a_tool_observed() -> None:
    """Who may revise a record may replace its value."""
    given = Given()
    given.say(seen("o1", "30 s"), speaker="probe", role="tool")
    given.say(seen("o2", "60 s", relation="supersedes"), speaker="meter", role="tool")
    assert standing(given, "o1") is Standing.ABANDONED
    assert value_of(given) == ["60 s"]


def test_a_finer_value_takes_nothing_away() -> None:
    """A user may say more exactly what a tool observed; its record stands."""
    given = Given()
    given.say(seen("o1", "Oslo", "site"), speaker="probe", role="tool")
    given.say(seen("o2", "Oslo, hall 2", "site"), speaker="bob", role="user")
    assert standing(given, "o1") is Standing.ACTIVE
    assert value_of(given, "site") == ["Oslo, hall 2"]


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("known", [[], ["40 %"]])
def test_what_a_tool_observes_is_not_too_late_for_a_users_value(
    role: str, known: list[str]
) -> None:
    """A value that a user dates ahead disputes what a tool observes then, and withdraws nothing."""
    given = Given()
    for value in known:
        given.say(seen("o1", value, valid_from="2026-02"), speaker="probe", role="tool")
    given.say(seen("x", "0 %", valid_from="2099"), speaker="bob", role=role)
    given.say(seen("o2", "45 %", valid_from="2026-03"), speaker="probe", role="tool")
    assert standing(given, "o2") is Standing.ACTIVE
    assert outcome(given, "o2") is outcome(given, "x") is Outcome.ABSTAIN
    assert value_of(given) == ["0 %", "45 %"]
    assert not known or standing(given, "o1") is Standing.ABANDONED, "its own source replaced it"


def test_a_tool_is_too_late_for_a_tool_and_may_overrule_a_user() -> None:
    """Who may revise a record is ahead of it; what a tool says to supersede is superseded."""
    given = Given()
    given.say(seen("o1", "60 s", valid_from="2026-05"), speaker="meter", role="tool")
    given.say(seen("x", "0 s", valid_from="2099"), speaker="bob", role="user")
    given.say(seen("o2", "30 s", valid_from="2026-03"), speaker="probe", role="tool")
    assert standing(given, "o2") is Standing.ABANDONED
    said = seen("o3", "50 s", valid_from="2026-06", relation="supersedes")
    given.say(said, speaker="probe", role="tool")
    assert standing(given, "x") is standing(given, "o1") is Standing.ABANDONED
    assert value_of(given) == ["50 s"]


def test_the_ledger_made_up_again_remembers_what_was_not_permitted() -> None:
    """A ledger from a snapshot equals the one that was kept, after values that were protected."""
    given = Given()
    given.say(seen("o1", "30 s"), speaker="probe", role="tool")
    given.say(
        seen("o2", "60 s", relation="supersedes"),
        speaker="bob",
        role="user",
    )
    given.say(seen("o3", "90 s"), speaker="bob", role="user")
    given.say(seen("x", "0 s", "size", valid_from="2099"), speaker="bob", role="user")
    given.say(seen("o4", "9 s", "size", valid_from="2026"), speaker="probe", role="tool")
    assert standing(given, "o4") is Standing.ACTIVE
    loaded = load(dump(given.conversation))
    kept = ledger_of(given.conversation)
    for again in (made_up(given.conversation), made_up(loaded)):
        assert dict(again.rows) == dict(kept.rows)
