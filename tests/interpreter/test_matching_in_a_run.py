"""A run with a model: what is compared is not asked, and restatements fall with their ground."""

from __future__ import annotations

from typing import Any

import orjson

from tests.engine.given import inline, observe, revise
from tests.interpreter.scripted_endpoint import ScriptedEndpoint, operations
from tests.interpreter.with_endpoint import standfast_at

CLAIM = "The order left on Monday."


def line(number: int, text: str, **fields: Any) -> bytes:
    """One line of input."""
    said = {
        "conversation_id": "c",
        "utterance_id": f"u{number}",
        "speaker": "ann",
        "text": text,
        "at": "2026-03-01T02:31:00Z",
        **fields,
    }
    return orjson.dumps(said) + b"\n"


def test_a_restated_premise_carries_its_restatement_down() -> None:
    """Of five lines one is sent to the model, and the draft is ungrounded once the premise fell."""
    assistant = {"speaker": "bot", "role": "assistant"}
    given = (
        line(1, "It left on Monday.", operations=[observe("o1", claim=CLAIM)])
        + line(2, "Thanks, so the order left on Monday.", **assistant)
        + line(3, CLAIM.upper(), kind="candidate", claims=[{"text": "It left.", "record": "t2.1"}])
        + line(4, "No, on Tuesday.", operations=[revise("o1", inline("o4"))])
        + line(5, "x", kind="candidate", claims=[{"text": "It left.", "record": "t2.1"}])
    )
    restated = observe("t2.1", claim="The order left on Monday", formula=None)
    with ScriptedEndpoint(always=lambda _: operations(restated)) as endpoint:
        ran = standfast_at(endpoint, "run", "-", "--interpreter", "openai", "--json", given=given)
    assert ran.returncode == 0, ran.stderr
    assert len(endpoint.asked) == 1
    events = [orjson.loads(each) for each in ran.stdout.splitlines()]
    verdicts = [each["data"] for each in events if each["type"] == "standfast.verdict.v1"]
    before, after = verdicts
    assert (before["outcome"], before["support"]) == ("grounded", ["o1", "t2.1"])
    assert (after["outcome"], after["reason"]) == ("ungrounded", "withdrawn_support")
    assert [failure["path"] for failure in after["failures"]] == [["t2.1", "o1"]]


def test_a_repeated_claim_is_checked_without_a_model() -> None:
    """A draft in the words of a record is answered, though the endpoint was asked for nothing."""
    given = line(1, "x", operations=[observe("o1", claim=CLAIM)])
    given += line(2, "the order left on Monday", kind="candidate")
    with ScriptedEndpoint() as endpoint:
        ran = standfast_at(endpoint, "run", "-", "--interpreter", "openai", "--json", given=given)
    assert ran.returncode == 0, ran.stderr
    assert endpoint.asked == []
    verdict = orjson.loads(ran.stdout.splitlines()[-1])["data"]
    assert (verdict["outcome"], verdict["support"]) == ("grounded", ["o1"])
