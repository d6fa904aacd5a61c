"""The two guards against gates over HTTP: the worker's own, and some that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from processor.client import Answer, AsyncGuard, Breaker, Claim, Guard, Outcome, RefusedError
from tests.client.asking import CLAIM, KINDS, alerts, ask
from tests.client.test_answers import conversation, draft
from tests.http_server import HttpServer
from tests.web.fake import served, token_for, write_tokens

PATH = "/v1/tenants/acme/conversations/c1/check"
GROUNDED = orjson.dumps(
    {
        "outcome": "grounded",
        "candidate_id": "d1",
        "recorded": False,
        "reason": None,
        "verdicts": [],
    }
)
Handler = Callable[[web.Request], Any]


def asked(kind: str, server: HttpServer, **settings: Any) -> Answer:
    """A check of a gate that misbehaves."""
    address = f"http://127.0.0.1:{server.port}"
    return ask(kind, "check", address, "c1", [CLAIM], settings=settings)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("record", "outcome", "allowed"),
    [("h1", Outcome.UNGROUNDED, False), ("e2", Outcome.GROUNDED, True)],
)
def test_a_check_asks_and_leaves_no_trace(
    kind: str, record: str, outcome: Outcome, allowed: bool
) -> None:
    """The verdict on the state as it is, and nothing in the log."""
    said = conversation()
    with served(said) as address:
        answer = ask(kind, "check", address, "c1", [Claim("so", record)], after="u2")
    assert (answer.outcome, answer.allowed, answer.recorded) == (outcome, allowed, False)
    assert said.appended == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_recorded_check_stands_in_the_log_under_its_name(kind: str) -> None:
    """A name of the client's own, or the one that was given, asked twice and recorded once."""
    said = conversation()
    with served(said) as address:
        first = ask(kind, "record", address, "c1", [CLAIM])
        again = [ask(kind, "record", address, "c1", [CLAIM], candidate_id="d1") for _ in range(2)]
    assert (first.recorded, first.outcome) == (True, "ungrounded")
    assert again[0] == again[1]
    assert [each.utterance_id for each in said.appended] == [first.candidate_id, "d1"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("fail", "allowed"), [("open", True), ("closed", False)])
def test_what_is_not_folded_in_time_is_pending_and_its_user_decides(
    kind: str, fail: str, allowed: bool
) -> None:
    """Failing open lets the draft pass, failing closed holds it."""
    with served(conversation()) as address:
        settings = {"fail": fail, "seconds": 1.0}
        answer = ask(kind, "record", address, "c1", [CLAIM], after="u9", settings=settings)
    assert (answer.outcome, answer.allowed) == (Outcome.PENDING, allowed)
    assert answer.explanation == "pending: not_folded_yet"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("fail", "allowed"), [("open", True), ("closed", False)])
def test_where_nobody_listens_its_user_decides(kind: str, fail: str, allowed: bool) -> None:
    """The answer says that nobody could be asked, and names the kind of failure alone."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        settings = {"fail": fail, "seconds": 0.5}
        answer = ask(kind, "check", address, "c1", [CLAIM], settings=settings)
    assert (answer.outcome, answer.allowed) == (Outcome.UNAVAILABLE, allowed)
    assert answer.problem == "the gate could not be asked: ConnectError"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("allow", "allowed"), [(("grounded",), False), (("grounded", "unverified"), True)]
)
def test_which_outcomes_allow_a_draft_can_be_said(
    kind: str, allow: tuple[str, ...], allowed: bool
) -> None:
    """A text of which no claim is known is unverified, and held unless its user says otherwise."""
    with served(conversation()) as address:
        answer = ask(kind, "record", address, "c1", text="So it is.", settings={"allow": allow})
    assert (answer.outcome, answer.allowed) == (Outcome.UNVERIFIED, allowed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gate_that_hangs_is_not_waited_for(kind: str) -> None:
    """Nothing comes at all: the deadline ends it."""

    async def hang(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(600)
        raise AssertionError

    with HttpServer(PATH, hang) as server:
        answer = asked(kind, server, seconds=0.5)
    assert answer.problem == "no answer came in time"


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_trickles_is_not_waited_for(kind: str) -> None:
    """Each byte comes soon, all of them never: the deadline holds for the whole."""

    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.05)

    with HttpServer(PATH, trickle) as server:
        answer = asked(kind, server, seconds=0.5)
    assert answer.problem == "no answer came in time"


@pytest.mark.parametrize("kind", KINDS)
def test_headers_that_trickle_are_not_waited_for(kind: str) -> None:
    """Byte by byte they would never end; the deadline holds for them as well."""
    ended = threading.Event()

    def trickle(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not ended.wait(0.05):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=trickle, args=[listening])
        thread.start()
        stop = threading.Timer(20.0, ended.set)  # a guard that waits fails, and does not hang
        stop.start()
        began = time.monotonic()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        answer = ask(kind, "check", address, "c1", [CLAIM], settings={"seconds": 0.5})
        took = time.monotonic() - began
        ended.set()
        stop.cancel()
        thread.join()
    assert answer.problem == "no answer came in time"
    assert took < 5.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_gate_that_reads_slowly_is_not_waited_for(kind: str) -> None:
    """A long draft that is taken a little at a time is given up at the deadline."""
    ended = threading.Event()

    def sip(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            while not ended.wait(0.01):
                connection.recv(65_536)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=sip, args=[listening])
        thread.start()
        stop = threading.Timer(20.0, ended.set)
        stop.start()
        began = time.monotonic()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        draft = "x" * 64_000_000
        answer = ask(kind, "check", address, "c1", text=draft, settings={"seconds": 1.0})
        took = time.monotonic() - began
        ended.set()
        stop.cancel()
        thread.join()
    assert answer.problem == "no answer came in time"
    assert took < 8.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_an_answer_without_end_is_not_read(kind: str, encoding: str | None) -> None:
    """What is larger than the bound is left, packed or not."""

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if encoding is not None:
            response.enable_compression(web.ContentCoding(encoding))
            response._compression_force = web.ContentCoding.gzip
        await response.prepare(request)
        while True:
            await response.write(b" " * 65_536)

    with HttpServer(PATH, endless) as server:
        answer = asked(kind, server, seconds=30.0, body_bytes_max=1_000_000)
    assert answer.problem == "the answer is larger than this guard reads"


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_that_ends_and_a_busy_gate_are_asked_again(kind: str) -> None:
    """First it hangs up, then it is busy, then it answers."""
    told: list[str] = []

    async def third_time(request: web.Request) -> web.StreamResponse:
        told.append(orjson.loads(await request.read())["claims"][0]["text"])
        if len(told) == 1:
            assert request.transport is not None
            request.transport.abort()
        if len(told) == 2:
            return web.Response(status=503, headers={"Retry-After": "0"})
        return web.Response(body=GROUNDED)

    with HttpServer(PATH, third_time) as server:
        assert asked(kind, server).outcome is Outcome.GROUNDED
    assert told == ["so"] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_redirect_is_not_followed(kind: str) -> None:
    """Whoever it leads to does not get the token."""
    followed: list[str] = []

    async def away(request: web.Request) -> web.StreamResponse:
        followed.append(str(request.url))
        return web.Response(status=307, headers={"Location": str(request.url)})

    with HttpServer(PATH, away) as server:
        answer = asked(kind, server)
    assert answer.problem == "307 about:blank: status 307 without problem details"
    assert len(followed) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_open_breaker_asks_nobody(kind: str) -> None:
    """After the failures that it takes, the gate is left alone."""
    count = 0

    async def fail(_: web.Request) -> web.StreamResponse:
        nonlocal count
        count += 1
        return web.Response(status=500)

    breaker = Breaker(failures_max=2, open_seconds=600.0)
    with HttpServer(PATH, fail) as server:
        answers = [asked(kind, server, breaker=breaker) for _ in range(5)]
    assert count == 2
    assert {each.problem for each in answers[2:]} == {
        "the breaker is open: the gate did not answer before"
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_token_is_an_error_whatever_its_user_decides(kind: str, tmp_path: Path) -> None:
    """To fail open is for a gate that is away, not for one that refuses."""
    _, line = token_for("acme")
    write_tokens(tmp_path / "tokens", line)
    with served(conversation(), tokens=tmp_path / "tokens") as address:
        with pytest.raises(RefusedError) as refused:
            ask(kind, "check", address, "c1", [CLAIM], token="sf_no", settings={"fail": "open"})
        with pytest.raises(RefusedError):
            alerts(kind, address, "c1", token="sf_no")
    assert (refused.value.status, refused.value.type) == (401, "urn:standfast:problem:unauthorised")


@pytest.mark.parametrize("kind", KINDS)
def test_alerts_of_what_was_said_and_of_what_comes(kind: str) -> None:
    """Those that are there, those behind a place, and one that comes while somebody follows."""
    said = conversation()
    said.say(draft("d1"), draft("d2"))
    with served(said) as address:
        first, second = alerts(kind, address, "c1")
        assert [first.candidate_id, second.candidate_id] == ["d1", "d2"]
        assert alerts(kind, address, "c1", first.since) == [second]
        assert alerts(kind, address, "c1", second.since) == []

        def enough(alert: Any) -> bool:
            if alert.candidate_id == "d2":
                ask("sync", "record", address, "c1", [CLAIM], candidate_id="d3")
            return bool(alert.candidate_id == "d3")

        if kind == "sync":
            found = alerts(kind, address, "c1", stop=enough, every_seconds=0.05)
            assert [alert.candidate_id for alert in found] == ["d1", "d2", "d3"]


def test_a_check_that_is_cancelled_leaves_the_guard_usable() -> None:
    """The connection is given up, and the next check is answered."""
    count = 0

    async def second_time(_: web.Request) -> web.StreamResponse:
        nonlocal count
        count += 1
        if count == 1:
            await asyncio.sleep(600)
        return web.Response(body=GROUNDED)

    async def main(address: str) -> Answer:
        async with AsyncGuard(address, "acme", "t", fail="closed", seconds=60.0) as guard:
            first = asyncio.create_task(guard.check("c1", [CLAIM]))
            while not count:
                await asyncio.sleep(0.01)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            return await guard.check("c1", [CLAIM])

    with HttpServer(PATH, second_time) as server:
        assert asyncio.run(main(f"http://127.0.0.1:{server.port}")).outcome is Outcome.GROUNDED


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"fail": "perhaps"}, "fail"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"allow": {"pending"}}, "allow"),
        ({"address": "localhost:8080"}, "address"),
        ({"address": "ftp://gate"}, "address"),
        ({"address": "http://me:secret@gate"}, "address"),
        ({"address": "http://gate?token=secret"}, "address"),
        ({"address": "http://[::1"}, "address"),
        ({"address": "http://a gate"}, "address"),
        ({"address": "http://ga\nte"}, "address"),
        ({"address": "http://gate:99999"}, "address"),
        ({"address": "http://gate:0"}, "address"),
        ({"token": "two words"}, "token"),
        ({"token": ""}, "token"),
        ({"token": "sf_secret\r\nX: y"}, "token"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_named_and_not_repeated(given: Any, place: str) -> None:
    """The message begins with the argument, and holds no secret."""
    settings = {"address": "http://gate", "token": "t", "fail": "open", **given}
    with pytest.raises(ValueError, match=f"^{place}: ") as wrong:
        Guard(settings.pop("address"), "acme", settings.pop("token"), **settings)
    assert "secret" not in str(wrong.value)


@pytest.mark.parametrize("guard", [Guard, AsyncGuard])
def test_how_a_guard_fails_must_be_said(guard: Any) -> None:
    """There is no default that hides it."""
    with pytest.raises(TypeError, match="fail"):
        guard("http://gate", "acme", "t")
