"""Retries, the breaker and the deadline, with a clock and a gate that are told what to do."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from processor.client import (
    AlertsMissedError,
    Breaker,
    Claim,
    Outcome,
    RefusedError,
    UnavailableError,
)
from processor.client.exchange import (
    Came,
    Give,
    Pause,
    Send,
    Step,
    Terms,
    ask,
    follow,
)
from processor.client.questions import (
    START,
    WAIT_MS_MAX,
    Lost,
    Reply,
    Request,
    alerts_question,
    check_question,
)

QUESTION = check_question(
    "acme", "c1", [Claim("so", "o1")], "", record=True, after="u1", candidate_id="d1"
)
AWAY = Lost("nobody there")


def said(outcome: str) -> Reply:
    """A check's answer without verdicts."""
    fields = {"outcome": outcome, "candidate_id": "d1", "recorded": True, "reason": None}
    return Reply(200, json.dumps({**fields, "verdicts": []}).encode())


def problem(status: int, retry_after: str | None = None) -> Reply:
    """Problem details."""
    told = {"type": "urn:standfast:problem:busy", "detail": "too many", "status": status}
    return Reply(status, json.dumps({**told, "place": "claims"}).encode(), retry_after)


@dataclass
class Played:
    """A gate that answers from a script, at once, and a clock that only pauses and waits move."""

    script: list[Reply | Lost]
    takes_seconds: float = 0.0
    now: float = 100.0
    requests: list[Request] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)
    breaker: Breaker = field(default_factory=lambda: Breaker(failures_max=1_000))

    def terms(self, seconds: float = 10.0, drawn: float = 1.0) -> Terms:
        """So much time in all."""
        return Terms(seconds, self.breaker, lambda: self.now, lambda: drawn)

    def run(self, steps: Generator[Step | Give, Came, Any]) -> Any:
        """To the end of the exchange, or of the script."""
        came: Came = None
        while True:
            try:
                step = steps.send(came)
            except StopIteration as ended:
                return ended.value
            came = None
            match step:
                case Send(request, seconds):
                    self.requests.append(request)
                    self.waits.append(seconds)
                    came = self.script.pop(0)
                    if self.takes_seconds > seconds:
                        came = Lost("no answer in time")
                    self.now += min(self.takes_seconds, seconds)
                case Pause(seconds):
                    self.pauses.append(seconds)
                    self.now += seconds
                case Give(alert):
                    self.given.append(alert)


@pytest.mark.parametrize(
    "first", [AWAY, problem(429), problem(502), problem(503), problem(504), problem(408)], ids=str
)
def test_what_may_pass_is_asked_again_under_the_same_name(first: Reply | Lost) -> None:
    """A lost connection, 408, 429, 502, 503 and 504 are asked again, with the same content."""
    played = Played([first, first, said("grounded")])
    assert played.run(ask(QUESTION, played.terms())).outcome is Outcome.GROUNDED
    bodies = [json.loads(request.body or b"") for request in played.requests]
    assert [body["candidate_id"] for body in bodies] == ["d1"] * 3
    assert [body["claims"] for body in bodies] == [[{"text": "so", "records": ["o1"]}]] * 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 422])
def test_a_refusal_is_raised_with_its_problem_details(status: int) -> None:
    """A request at fault is not sent again, and the error names type, detail and place."""
    played = Played([problem(status)])
    with pytest.raises(RefusedError) as refused:
        played.run(ask(QUESTION, played.terms()))
    assert (refused.value.status, refused.value.place) == (status, "claims")
    assert refused.value.type == "urn:standfast:problem:busy"
    assert str(refused.value) == (
        f"the gate refuses: {status} urn:standfast:problem:busy: too many (claims)"
    )


@pytest.mark.parametrize("reply", [problem(500), Reply(302, b""), Reply(200, b"<html>")], ids=str)
def test_what_asking_again_would_not_change_is_not_asked_again(reply: Reply) -> None:
    """A failure inside, a redirect and an answer that is none end the exchange at once."""
    played = Played([reply])
    assert isinstance(played.run(ask(QUESTION, played.terms())), Lost)
    assert played.pauses == []


def test_the_gate_says_how_long_to_wait() -> None:
    """Retry-After is the least pause, and chance is added to it."""
    played = Played([problem(503, "2"), problem(429, "3"), said("grounded")])
    played.run(ask(QUESTION, played.terms(drawn=0.0)))
    assert [int(pause) for pause in played.pauses] == [2, 3]
    assert all(pause > int(pause) for pause in played.pauses)


def test_a_pause_beyond_the_deadline_is_not_made() -> None:
    """Where the gate asks for more time than there is, the answer is what it said."""
    played = Played([problem(503, "60")])
    lost = played.run(ask(QUESTION, played.terms(seconds=5.0)))
    assert lost == Lost("503 urn:standfast:problem:busy: too many")
    assert played.pauses == []


@pytest.mark.parametrize("retry_after", ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "1e9", "", "9" * 9])
def test_a_retry_after_that_is_no_number_of_seconds_is_not_followed(retry_after: str) -> None:
    """A date or nonsense leaves the client's own pause."""
    played = Played([problem(503, retry_after), said("grounded")])
    played.run(ask(QUESTION, played.terms()))
    assert played.pauses == [0.1]


@pytest.mark.parametrize("drawn", [0.0, 1.0])
def test_pauses_double_up_to_a_bound_and_differ_by_chance(drawn: float) -> None:
    """Between half of it and all of it, so that many clients do not come back together."""
    played = Played([AWAY] * 9 + [said("grounded")])
    played.run(ask(QUESTION, played.terms(seconds=1_000, drawn=drawn)))
    most = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert played.pauses == pytest.approx([pause * (0.5 + drawn / 2) for pause in most])


def test_all_attempts_share_one_deadline() -> None:
    """Each attempt gets what is left, and when nothing is, the last reply stands."""
    played = Played([AWAY] * 20, takes_seconds=1.0)
    assert played.run(ask(QUESTION, played.terms(seconds=4.0))) == Lost("no answer in time")
    assert played.now == pytest.approx(104.0)
    assert played.waits == sorted(played.waits, reverse=True)
    assert len(played.waits) >= 3


def test_pending_is_asked_again_while_there_is_time() -> None:
    """The gate waits nearly as long as there is; what is still pending then is the answer."""
    played = Played([said("pending"), said("pending"), said("grounded")], takes_seconds=30.0)
    assert played.run(ask(QUESTION, played.terms(seconds=100.0))).outcome is Outcome.GROUNDED
    asked = [json.loads(request.body or b"")["wait_ms"] for request in played.requests]
    assert asked == [WAIT_MS_MAX] * 3
    played = Played([said("pending")], takes_seconds=1.9)
    assert played.run(ask(QUESTION, played.terms(seconds=2.0))).outcome is Outcome.PENDING
    assert json.loads(played.requests[0].body or b"")["wait_ms"] == 1_500


def test_the_breaker_opens_after_failures_in_a_row_and_lets_one_through() -> None:
    """While it is open nothing is sent; one request closes it or opens it again."""
    breaker = Breaker(failures_max=2, open_seconds=30.0)
    played = Played([AWAY, AWAY], breaker=breaker)
    assert "breaker" in played.run(ask(QUESTION, played.terms())).problem
    assert len(played.requests) == 2
    assert "breaker" in played.run(ask(QUESTION, played.terms())).problem
    assert len(played.requests) == 2
    played.now += 30.0
    played.script = [problem(500)]
    played.run(ask(QUESTION, played.terms()))
    assert "breaker" in played.run(ask(QUESTION, played.terms())).problem
    played.now += 30.0
    played.script = [said("grounded"), said("grounded")]
    for _ in range(2):
        assert played.run(ask(QUESTION, played.terms())).outcome is Outcome.GROUNDED


def test_while_one_request_tries_the_others_wait() -> None:
    """An open breaker admits a single request, and a second one when the first went away."""
    breaker = Breaker(failures_max=1, open_seconds=1.0)
    breaker.failed(0.0)
    assert not breaker.admit(0.5)
    assert breaker.admit(1.0)
    assert not breaker.admit(1.0)
    breaker.abandoned()
    assert breaker.admit(1.0)
    breaker.succeeded()
    assert breaker.admit(1.0)
    assert breaker.admit(1.0)


def test_a_request_that_is_cancelled_leaves_the_breaker_usable() -> None:
    """Whoever closes an exchange in the middle gives the trial back."""
    breaker = Breaker(failures_max=1, open_seconds=1.0)
    breaker.failed(0.0)
    played = Played([], breaker=breaker)
    with closing(ask(QUESTION, played.terms())) as steps:
        assert isinstance(next(steps), Send)
    assert breaker.admit(played.now)


@pytest.mark.parametrize("reply", [problem(429), said("grounded"), said("pending")], ids=str)
def test_a_gate_that_answers_is_no_failure(reply: Reply) -> None:
    """A tenant over its rate and a draft not folded yet say nothing against the gate."""
    breaker = Breaker(failures_max=1)
    played = Played([reply], breaker=breaker, takes_seconds=1.95)
    played.run(ask(QUESTION, played.terms(seconds=2.0)))
    assert breaker.admit(played.now)


def test_a_check_that_is_refused_closes_the_breaker() -> None:
    """A gate that refuses is there."""
    breaker = Breaker(failures_max=2)
    breaker.failed(0.0)
    played = Played([problem(404)], breaker=breaker)
    with pytest.raises(RefusedError):
        played.run(ask(QUESTION, played.terms()))
    breaker.failed(0.0)
    assert breaker.admit(0.0)


def page(*places: int, since: str, is_last: bool, is_whole: bool = True) -> Reply:
    """A page of alerts about decisions."""
    alerts = [{"since": f"{place}.0", "alert": _alert(place)} for place in places]
    told = {"alerts": alerts, "since": since, "is_last": is_last, "is_whole": is_whole}
    return Reply(200, json.dumps(told).encode())


def _alert(turn: int) -> dict[str, Any]:
    return {
        "turn": turn,
        "record": "h1",
        "candidate": None,
        "severity": "critical",
        "reason": "withdrawn_support",
        "message": "decision h1 is not grounded",
    }


def stream(played: Played, every_seconds: float | None) -> Sequence[int]:
    """The turns of the alerts that come."""
    question = alerts_question("acme", "c1", START)
    played.run(follow(question, played.terms(), every_seconds))
    return [alert.turn for alert in played.given]


def test_alerts_come_page_by_page() -> None:
    """Each page is asked for behind the one before, until the last."""
    script: list[Reply | Lost] = [
        page(1, 2, since="2.0", is_last=False),
        AWAY,
        page(4, since="9.9", is_last=True),
    ]
    played = Played(script)
    assert stream(played, None) == [1, 2, 4]
    asked = [request.path.rpartition("=")[2] for request in played.requests]
    assert asked == ["0.0", "2.0", "2.0"]


def test_alerts_that_the_worker_does_not_have_are_said_to_be_missed() -> None:
    """The error names from where on there are all of them."""
    played = Played([page(since="7.999", is_last=False, is_whole=False)])
    with pytest.raises(AlertsMissedError) as missed:
        stream(played, None)
    assert missed.value.since == "7.999"


def test_who_follows_waits_for_a_gate_that_is_away() -> None:
    """Away for longer than an exchange takes, it is asked on; who does not follow is told."""
    with pytest.raises(UnavailableError, match="in time"):
        stream(Played([AWAY] * 20, takes_seconds=6.0), None)
    script: list[Reply | Lost] = [
        *[AWAY] * 6,
        page(1, since="1.9", is_last=True),
        page(3, since="3.9", is_last=True),
        problem(404),
    ]
    played = Played(script, takes_seconds=6.0)
    with pytest.raises(RefusedError):
        stream(played, 2.0)
    assert [alert.turn for alert in played.given] == [1, 3]
    assert 2.0 in played.pauses


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("ac me", "c1", None, "so"), "tenant"),
        (("acme", "../c1", None, "so"), "conversation"),
        (("acme", "", None, "so"), "conversation"),
        (("acme", "c1", None, ""), "claims or text"),
        (("acme", "c1", [Claim("so", "o 1")], ""), "claims"),
    ],
)
def test_an_argument_that_no_gate_would_take_is_named(arguments: Any, place: str) -> None:
    """Before anything is sent, and so that no name can leave its place in the path."""
    with pytest.raises(ValueError, match=f"^{place}: "):
        check_question(*arguments, record=False, after=None, candidate_id=None)


@pytest.mark.parametrize("name", ["after", "candidate_id"])
def test_an_id_that_no_gate_would_take_is_named(name: str) -> None:
    """The other two arguments that go into a request."""
    ids = {"after": None, "candidate_id": None, name: "u 1"}
    with pytest.raises(ValueError, match=f"^{name}: "):
        check_question("acme", "c1", None, "so", record=False, **ids)
