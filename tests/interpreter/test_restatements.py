"""What an assistant says again rests on what it repeats, and falls with it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from processor.interpreter.matching import MatchingInterpreter
from processor.interpreter.port import Reading
from processor.interpreter.restatements import link_restatements
from schemas.operations import Operation
from tests.engine.given import (
    Given,
    expand,
    hypothesize,
    inline,
    observe,
    question,
    resolve,
    revise,
    support,
    undermine,
)
from tests.interpreter.test_candidates import MODEL, Scripted, draft

CLAIM = "The order left on Monday."


def operations(*brought: dict[str, Any]) -> tuple[Operation, ...]:
    """Operations as an interpreter gives them."""
    read = draft("x", kind="statement", operations=brought).operations
    assert read is not None
    return read


def linked(given: Given, *brought: dict[str, Any], role: str = "assistant") -> list[dict[str, Any]]:
    """The operations after linking, without the fields that say nothing."""
    after = link_restatements(given.conversation.state, role, operations(*brought))
    return [operation.model_dump(exclude_defaults=True) for operation in after]


@pytest.fixture
def given() -> Given:
    """A conversation in which a user has said something."""
    given = Given()
    given.say(observe("u1", claim=CLAIM), observe("u2", claim="It rained."))
    return given


@pytest.mark.parametrize("make", [observe, hypothesize])
def test_a_restatement_gets_what_it_restates_as_a_premise(given: Given, make: Any) -> None:
    """A record of an assistant with the claim of another is linked to it, beside its premises."""
    (operation,) = linked(given, make("b1", "u2", claim="the order left on monday"))
    assert operation["premises"] == ("u1", "u2")


def test_withdrawing_the_premise_withdraws_the_restatement(given: Given) -> None:
    """Once the user's claim is given up, what the assistant made of it is no longer grounded."""
    model = Scripted(Reading(MODEL, operations(observe("b1", claim=CLAIM))))
    said = draft("As you said, the order left on Monday.", kind="statement")
    reading = asyncio.run(MatchingInterpreter(model).interpret(given.conversation, said, None))
    assert isinstance(reading, Reading)
    brought = [each.model_dump(mode="json", exclude_defaults=True) for each in reading.operations]
    given.say(*({"op": "observe", **each} for each in brought), role="assistant")
    state = given.conversation.state
    assert state.records["b1"].grounded
    turn = given.say(revise("u1", inline("n", claim="It left on Tuesday.")))
    assert not state.records["b1"].grounded
    assert turn.ungrounded == ("b1", "u1")


def test_a_restatement_of_what_was_given_up_is_born_ungrounded(given: Given) -> None:
    """Repeating a withdrawn claim does not bring it back."""
    given.say(revise("u1", inline("n")))
    (operation,) = linked(given, observe("b1", claim=CLAIM))
    turn = given.say({"op": "observe", **operation}, role="assistant")
    assert turn.ungrounded == ("b1",)


def test_of_several_the_first_that_counts_is_restated(given: Given) -> None:
    """A claim that was given up and said anew by somebody is restated from the one that stands."""
    given.say(revise("u1", inline("n")))
    given.say(observe("b0", "u1", claim=CLAIM))
    given.say(observe("u9", claim=CLAIM))
    (operation,) = linked(given, observe("b1", claim=CLAIM))
    assert operation["premises"] == ("u9",)


@pytest.mark.parametrize("role", ["user", "tool", "backend"])
def test_others_are_witnesses_of_their_own(given: Given, role: str) -> None:
    """Only an assistant's repetition is no new evidence."""
    (operation,) = linked(given, observe("b1", claim=CLAIM), role=role)
    assert "premises" not in operation


def test_other_words_and_cited_premises_are_left_alone(given: Given) -> None:
    """A claim of its own, a link that is there, and a record of the same id get no premise."""
    after = linked(
        given,
        observe("b1", claim="The order arrived."),
        observe("b2", "u1", claim=CLAIM),
        observe("u1", claim=CLAIM),
        question("q1", "u1"),
        expand("p1"),
    )
    assert [each.get("premises") for each in after] == [None, ("u1",), None, None, None]


def test_evidence_that_restates_is_linked_wherever_it_stands(given: Given) -> None:
    """Inline records of every operation are linked, also those that stand in another's premises."""
    again = inline("b1", claim=CLAIM)
    after = linked(
        given,
        support("u2", again),
        undermine("u2", again),
        revise("u2", again),
        resolve("u2", premises=[again], decision=inline("d", again)),
    )
    expected = {"record": "b1", "claim": CLAIM, "premises": ("u1",)}
    assert [each.get("evidence", each.get("by")) for each in after[:3]] == [expected] * 3
    assert after[3]["premises"] == (expected,)
    assert after[3]["decision"]["premises"] == (expected,)


def test_a_claim_is_no_evidence_for_itself(given: Given) -> None:
    """An assistant that supports a record by repeating it is refused: self_reference."""
    after = linked(given, support("u1", inline("b1", claim=CLAIM)))
    assert after[0]["evidence"] == "u1"
    assert given.refused({"op": "support", **after[0]}) == [(0, "self_reference")]
