"""Every failure of an endpoint: it is waited out, told, and never paid with a turn."""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import time
import traceback

import pytest

from processor.interpreter.limits import TenantBudgets
from processor.interpreter.openai_client import OpenAIModel
from processor.interpreter.port import EndpointUnavailable, Reading, Unreadable
from schemas.log import ANSWER_CHARS_MAX
from tests.interpreter.asking import Waits, ask, model_at, read, utterance, with_model
from tests.interpreter.scripted_endpoint import (
    KEY,
    HangUp,
    Raw,
    Said,
    ScriptedEndpoint,
    Slow,
    Status,
    Step,
    operations,
)

OBSERVE = {"op": "observe", "record": "o1", "claim": "it rains"}
GOOD = operations(OBSERVE)

PASSING: list[Step] = [
    Status(408),
    Status(409),
    Status(429),
    Status(429, retry_after="0"),
    Status(500),
    Status(502),
    Status(503),
    HangUp(),
    HangUp(in_body=True),
    Raw(b"<html>busy</html>"),
    Raw(b""),
    Raw(b"{}"),
    Raw(b'{"choices": []}'),
    Raw(b'{"error": {"message": "busy"}}'),
    operations()._replace(finish_reason="error"),
    Raw(b'{"choices": [{"message": {"content": {"a": 1}}}]}'),
    Raw(b'{"choices": [{"message": {"content": "\\ud800"}}]}'),
    Raw(b"\xff\xfe", status=500),
]


@pytest.mark.parametrize("failure", PASSING, ids=repr)
def test_a_fault_of_the_endpoint_is_tried_again(failure: Step) -> None:
    """Once, twice, and then the answer counts as if nothing had been."""
    waits = Waits()
    with ScriptedEndpoint([failure, failure, GOOD]) as endpoint:
        reading = read(model_at(endpoint, waits))
    assert isinstance(reading, Reading)
    assert reading.operations
    assert waits.slept == [0.5, 1.0]


@pytest.mark.parametrize("failure", PASSING, ids=repr)
def test_a_fault_that_stays_is_the_endpoints(failure: Step) -> None:
    """After the last try it is said to be unavailable, which says nothing about the utterance."""
    with (
        ScriptedEndpoint(always=lambda _: failure) as endpoint,
        pytest.raises(EndpointUnavailable),
    ):
        read(model_at(endpoint))
    assert len(endpoint.asked) == 3


@pytest.mark.parametrize("status", [401, 402, 403, 404, 405, 418])
def test_what_only_an_operator_can_mend_is_not_tried_again(status: int) -> None:
    """A bad key or a model that is not there fails no turn: it is waited for as an outage is."""
    with (
        ScriptedEndpoint([Status(status)]) as endpoint,
        pytest.raises(EndpointUnavailable, match=f"HTTP {status}"),
    ):
        read(model_at(endpoint))
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "context_length_exceeded"), (400, "content_filter"), (413, None), (422, None)],
)
def test_a_request_that_is_refused_is_the_utterances_fault(status: int, code: str | None) -> None:
    """It would be refused again, so its turn fails with the reason."""
    with ScriptedEndpoint([Status(status, code)]) as endpoint:
        failed = read(model_at(endpoint))
    assert isinstance(failed, Unreadable)
    assert failed.reason == f"the endpoint refuses the request: HTTP {status} {code or ''}".strip()
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("slow", [Slow(5.0), Slow(5.0, trickles=True)])
def test_a_call_has_a_deadline(slow: Slow) -> None:
    """However the time passes: in silence, or with a byte now and then."""
    started = time.monotonic()
    with (
        ScriptedEndpoint(always=lambda _: slow) as endpoint,
        pytest.raises(EndpointUnavailable, match=r"no answer within 0\.3 s"),
    ):
        read(model_at(endpoint, call_s_max=0.3))
    assert time.monotonic() - started < 4


def test_a_reading_has_a_deadline_and_tells_what_it_has_spent() -> None:
    """The cost of the calls that were answered before is not lost."""
    with (
        ScriptedEndpoint([Said("Sorry?"), Slow(5.0)]) as endpoint,
        pytest.raises(EndpointUnavailable) as told,
    ):
        read(model_at(endpoint), utterance_s_max=0.5)
    assert told.value.spent is not None
    assert (told.value.spent.attempts, told.value.spent.tokens_in) == (1, 100)


def test_the_deadline_of_a_reading_holds_for_the_self_test_too() -> None:
    """Those who wait for another's self-test of an endpoint that hangs are told in time."""

    async def hangs(model: OpenAIModel) -> None:
        slow = asyncio.create_task(model.shape())
        with pytest.raises(EndpointUnavailable, match=r"no answer within 0\.2 s") as told:
            await ask(model, utterance_s_max=0.2)
        slow.cancel()
        assert told.value.spent is None

    with ScriptedEndpoint(hangs_in_tests=True) as endpoint:
        with_model(model_at(endpoint), hangs)


def test_the_endpoint_says_how_long_to_leave_it_alone() -> None:
    """Retry-After in seconds and as a date is waited out, and jitter comes on top."""
    date = email.utils.formatdate(time.time() + 20, usegmt=True)
    waits = Waits()
    with ScriptedEndpoint([Status(429, retry_after="7"), Status(503, None, date), GOOD]) as (
        endpoint
    ):
        read(model_at(endpoint, waits))
    assert waits.slept[0] == 7.5
    assert 18 < waits.slept[1] <= 21


@pytest.mark.parametrize(
    "written", ["soon", "-1", "-1000000000", "1e9", "1e999", "9" * 400, "Wed, 99 Foo 2026"]
)
def test_a_retry_after_that_means_nothing_is_left_out(written: str) -> None:
    """The usual pause is made."""
    waits = Waits()
    with ScriptedEndpoint([Status(429, retry_after=written), GOOD]) as endpoint:
        read(model_at(endpoint, waits))
    assert waits.slept == [0.5]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("60", 60), ("3601", 3_600), ("1000000000", 3_600), ("Fri, 31 Dec 9999 23:59:59 GMT", 3_600)],
)
def test_a_long_retry_after_is_handed_on(written: str, seconds: float) -> None:
    """Whoever holds a place for a call gives it up for so long, and for an hour at most."""
    waits = Waits()
    with (
        ScriptedEndpoint([Status(429, retry_after=written)]) as endpoint,
        pytest.raises(EndpointUnavailable) as told,
    ):
        read(model_at(endpoint, waits))
    assert told.value.retry_after_s == seconds
    assert waits.slept == []


def test_a_breaker_leaves_a_failing_endpoint_alone() -> None:
    """It opens after failures in a row, lets one call try later, and closes if it is answered."""
    waits = Waits()

    async def tell(model: OpenAIModel) -> list[str]:
        told: list[str] = []
        for _ in range(5):
            try:
                await ask(model)
                told.append("answered")
            except EndpointUnavailable as failure:
                told.append(str(failure))
            waits.now += 6.0
        return told

    with ScriptedEndpoint([Status(500)] * 3) as endpoint:
        told = with_model(model_at(endpoint, waits, failures_max=3), tell)
    left_alone = "the endpoint failed again and again: not asked"
    assert told == ["HTTP 500", left_alone, "answered", "answered", "answered"]
    assert len(endpoint.asked) == 6


def test_a_tenant_over_its_budget_is_not_read() -> None:
    """Its turns fail with the reason until the period is over; another tenant's do not."""
    waits = Waits()
    budgets = TenantBudgets(tokens_max=150, calls_max=10, period_s=60, clock=waits.clock)
    with ScriptedEndpoint() as endpoint:

        def say(tenant: str) -> bool:
            said = utterance(tenant_id=tenant)
            return isinstance(read(model_at(endpoint), said, budgets=budgets), Reading)

        assert [say("a"), say("a"), say("a"), say("b")] == [True, True, False, True]
        waits.now += 60
        assert say("a")


def test_a_budget_of_calls_counts_corrections() -> None:
    """A model that must be asked twice spends two calls."""
    budgets = TenantBudgets(calls_max=1)
    with ScriptedEndpoint([Said("Sorry?"), GOOD]) as endpoint:
        failed = read(model_at(endpoint), budgets=budgets)
    assert isinstance(failed, Unreadable)
    assert failed.reason == "the tenant's budget of 1 calls in 3,600 s is spent"
    assert failed.provenance.tokens_in == 100


@pytest.mark.parametrize("failure", [Status(503), Slow(5.0)])
def test_an_outage_spends_no_calls(failure: Step) -> None:
    """What went unanswered is not counted: a call that failed, and one that a deadline ended."""
    budgets = TenantBudgets(calls_max=1)
    with ScriptedEndpoint([failure] * 3) as endpoint:
        with pytest.raises(EndpointUnavailable):
            read(model_at(endpoint), budgets=budgets, utterance_s_max=0.3)
        endpoint.steps.clear()
        assert isinstance(read(model_at(endpoint), budgets=budgets), Reading)
        assert isinstance(read(model_at(endpoint), budgets=budgets), Unreadable)


def test_a_server_that_counts_nothing_is_estimated() -> None:
    """So budgets and sums hold for it too."""
    with ScriptedEndpoint([GOOD._replace(usage=None)]) as endpoint:
        reading = read(model_at(endpoint))
    assert reading.provenance.tokens_in == 4  # "Read." and "something", at four characters each
    assert reading.provenance.tokens_out == -(-len(GOOD.text or "") // 4)


@pytest.mark.parametrize(
    "counted", ["{}", '{"prompt_tokens": -1, "completion_tokens": 2}', f"[{'9' * 400}]", "true"]
)
def test_a_server_that_counts_what_cannot_be_is_estimated(counted: str) -> None:
    """An answer is not lost over its price."""
    choice = {"message": {"content": GOOD.text}, "finish_reason": "stop"}
    body = f'{{"choices": [{json.dumps(choice)}], "usage": {counted}}}'
    with ScriptedEndpoint([Raw(body.encode())]) as endpoint:
        reading = read(model_at(endpoint))
    assert isinstance(reading, Reading)
    assert reading.provenance.tokens_in == 4


def test_an_answer_that_is_too_long_to_keep_is_read_and_not_kept() -> None:
    """The event stays small; the identity of the request stays."""
    long = operations(OBSERVE, rationale="x" * ANSWER_CHARS_MAX)
    with ScriptedEndpoint([long]) as endpoint:
        reading = read(model_at(endpoint))
    assert isinstance(reading, Reading)
    assert reading.operations
    (call,) = reading.provenance.calls
    assert call.answer is None
    assert len(call.request) == 64


def test_no_key_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """It stands in no exception, no trace of one, no event and no log, not even at level debug."""
    caplog.set_level(logging.DEBUG)
    echo = Status(500, code=f"key {KEY}", message=f"Incorrect API key provided: {KEY}")
    with ScriptedEndpoint([echo, HangUp(), Status(400, code=KEY, message=KEY), GOOD]) as endpoint:
        told = repr([read(model_at(endpoint)) for _ in range(2)])
        endpoint.key = "another"
        with pytest.raises(EndpointUnavailable) as failed:
            read(model_at(endpoint))
    told += "".join(traceback.format_exception(failed.value))
    assert "HTTP 400" in told
    assert "HTTP 401" in told
    assert KEY not in told
    assert KEY not in caplog.text
