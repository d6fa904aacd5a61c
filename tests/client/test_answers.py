"""What the contracts write, the client reads; anything else is refused by name."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.client import Answer, Outcome, RefusedError
from processor.client import questions as asked
from processor.client.answers import Checked, read_alerts, read_checked, read_problem
from processor.client.errors import UnreadableError
from schemas.derived import Outcome as GateOutcome
from schemas.http import (
    PLACE_MAX,
    WAIT_MS_MAX,
    AlertsAnswer,
    CheckAnswer,
    CheckRequest,
    PlacedAlert,
    ProblemDetails,
)
from schemas.ids import NAME_PATTERN, RECORD_PATTERN, TENANT_PATTERN
from schemas.wire import canonical_bytes, decode_contract
from tests.web.fake import FakeConversations, observe, run, serving, statement

WITHDRAWN = {
    "op": "revise",
    "target": "o1",
    "by": {"record": "e2", "claim": "It was staging."},
}


def conversation() -> FakeConversations:
    """An observation that rests on another, which is withdrawn."""
    said = FakeConversations()
    said.say(statement("u1", observe("o1"), observe("h1", "o1")), statement("u2", WITHDRAWN))
    return said


def draft(candidate_id: str) -> dict[str, Any]:
    """A draft that rests on what was withdrawn."""
    claims = [{"text": "so", "record": "h1"}]
    fields = statement(candidate_id, kind="candidate", claims=claims)
    del fields["operations"]
    return fields


def answered(claims: Any) -> bytes:
    """What a gate says, as bytes."""

    async def main() -> bytes:
        async with serving(conversation()) as client:
            _, said = await client.check(claims)
            return orjson.dumps(said)

    return run(main())


def test_every_field_of_an_answer_is_read_as_the_contract_has_it() -> None:
    """Outcome, verdicts, failures with their paths, and what the draft is called."""
    body = answered([{"text": "so", "record": "h1"}, {"text": "and", "record": "e2"}])
    said = decode_contract(CheckAnswer, body)
    read = read_checked(body)
    assert (read.outcome, read.candidate_id, read.recorded) == ("ungrounded", said.candidate_id, 1)
    assert [verdict.outcome for verdict in read.verdicts] == ["ungrounded", "grounded"]
    failure, told = read.verdicts[0].failures[0], said.verdicts[0].failures[0]
    assert (failure.record, failure.path) == ("o1", ("h1", "o1")) == (told.record, told.path)
    assert (failure.op, failure.by, failure.speaker) == ("revise", "e2", "ann")
    assert read.verdicts[0].is_complete


def test_an_explanation_says_what_does_not_stand() -> None:
    """One line for each claim that is not grounded, with the record it ran into and the path."""
    read = read_checked(answered([{"text": "so", "record": "h1"}, {"text": "a\nb"}]))
    answer = Answer(read.outcome, False, verdicts=read.verdicts)
    assert answer.explanation.splitlines() == [
        '"so", h1: ungrounded; o1 is abandoned since turn 2 (revise by e2, ann), '
        "reached through h1 -> o1",
        '"a\\nb": ungrounded; no record',
    ]
    assert json.loads(json.dumps(answer.as_dict()))["explanation"] == answer.explanation


def test_the_client_knows_every_outcome_of_a_gate() -> None:
    """And one of its own."""
    assert {*GateOutcome, "unavailable"} == set(Outcome)


def test_the_client_takes_the_names_that_the_contracts_take() -> None:
    """It has copies of the patterns and bounds, because it is installed without the contracts."""
    patterns = [asked.TENANT, asked.NAME, asked.RECORD]
    assert [f"^{each.pattern}$" for each in patterns] == [
        TENANT_PATTERN,
        NAME_PATTERN,
        RECORD_PATTERN,
    ]
    assert asked.WAIT_MS_MAX == WAIT_MS_MAX
    assert decode_contract(
        CheckRequest,
        asked.check_question(
            "acme",
            "c1",
            [asked.Claim("so", "o1", "o2"), asked.Claim("it")],
            "words",
            record=True,
            after="u1",
            candidate_id="d",
        )
        .request(5.0)
        .body
        or b"",
    ) == CheckRequest.model_validate(
        {
            "claims": ({"text": "so", "records": ("o1", "o2")}, {"text": "it"}),
            "text": "words",
            "after": "u1",
            "candidate_id": "d",
            "wait_ms": 4_500,
        }
    )


def test_alerts_are_read_as_the_contract_has_them() -> None:
    """A decision by its record, a claim by its draft."""
    said = conversation()
    said.say(draft("d1"))

    async def main() -> bytes:
        async with serving(said) as client:
            _, page = await client.get("/v1/tenants/acme/conversations/c1/alerts")
            return orjson.dumps(page)

    body = run(main())
    told = decode_contract(AlertsAnswer, body)
    read = read_alerts(body)
    assert read.is_last
    assert read.since == f"3.{PLACE_MAX}" == told.since
    (alert,) = read.alerts
    assert (alert.candidate_id, alert.claim, alert.records) == ("d1", "so", ("h1",))
    assert alert.since == told.alerts[0].since
    assert alert.message == told.alerts[0].alert.message


def test_problem_details_are_read_as_the_contract_has_them() -> None:
    """Type, detail and place; what is no problem is named by its status."""
    told = ProblemDetails(type="urn:x", title="No", status=400, detail="so", place="claims")
    assert read_problem(400, canonical_bytes(told)) == ("urn:x", "so", "claims")
    assert read_problem(502, b"<html>")[1] == "status 502 without problem details"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"outcome": "certain"}, "outcome"),
        ({"outcome": 3}, "outcome"),
        ({"recorded": 1}, "recorded"),
        ({"candidate_id": None}, "candidate_id"),
        ({"verdicts": {}}, "verdicts"),
        ({"verdicts": ["so"]}, r"verdicts\[0\]"),
        ({"verdicts": [{"candidate": {"text": "so", "records": [1]}}]}, r"verdicts\[0\]"),
    ],
)
def test_an_answer_that_is_none_is_refused_by_its_field(change: Any, place: str) -> None:
    """The first field that is not what it must be is named."""
    fields = {**orjson.loads(answered([{"text": "so", "record": "e2"}])), **change}
    with pytest.raises(UnreadableError, match=place):
        read_checked(orjson.dumps(fields))


def test_fields_of_later_versions_are_passed_over() -> None:
    """A client reads what a newer worker says."""
    fields = orjson.loads(answered([{"text": "so", "record": "e2"}]))
    fields["mood"] = "good"
    fields["verdicts"][0]["mood"] = "good"
    assert read_checked(orjson.dumps(fields)).outcome is Outcome.GROUNDED


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["grounded"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*Checked.__dataclass_fields__, "candidate", "alerts", "since"]),
            inner,
            max_size=8,
        )
    ),
)


@given(st.binary(max_size=40) | _JSON.map(lambda value: json.dumps(value).encode()))
def test_nothing_else_comes_of_a_body_than_an_answer_or_a_refusal(body: bytes) -> None:
    """Whatever a body holds, reading it raises UnreadableError or nothing."""
    for read in (read_checked, read_alerts):
        try:
            read(body)
        except UnreadableError:
            continue
    read_problem(500, body)


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000, b"\xff", b""])
def test_hostile_bodies_are_no_answers(body: bytes) -> None:
    """Deep nesting, endless numbers and broken text are refused like anything else."""
    with pytest.raises(UnreadableError):
        read_checked(body)


def test_a_refusal_says_what_the_problem_said() -> None:
    """The fields stand in the error, for code that decides by them."""
    refused = RefusedError(409, "urn:standfast:problem:id-reused", "used before", "candidate_id")
    assert (refused.status, refused.type) == (409, "urn:standfast:problem:id-reused")
    assert "(candidate_id)" in str(refused)


def test_a_placed_alert_is_part_of_the_contract() -> None:
    """The client's fields are those of the contract."""
    assert set(PlacedAlert.model_fields) == {"since", "alert"}
