"""Who owns a conversation answers; every other worker sends the request on, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError

from processor.app.conversations import Elsewhere, Ours
from processor.app.gate_settings import GateSettings
from processor.app.web import gate
from processor.app.web.routing import FORWARDED, WAITING_FOR_ONE_MAX
from tests.web.fake import (
    HERE,
    Client,
    FakeConversations,
    observe,
    run,
    serving,
    statement,
    token_for,
    write_tokens,
)


def owning() -> FakeConversations:
    """The owner's conversations."""
    said = FakeConversations()
    said.say(statement("u1", observe("o1"), observe("it's/so", "o1")))
    return said


def test_a_request_is_sent_on_as_it_is(tmp_path: Any) -> None:
    """Method, body, query, encoded path and token arrive; the owner's answer comes back."""
    token, line = token_for("acme")
    write_tokens(tmp_path / "tokens", line)
    tokens = {"tokens": tmp_path / "tokens"}

    async def main() -> None:
        owner, asked = owning(), FakeConversations(Ours(1, 0))
        async with serving(owner, **tokens) as there, serving(asked, **tokens) as here:
            asked.owner = Elsewhere(there.address)
            status, answer = await here.check([{"record": "o1"}], token, candidate_id="d1")
            assert (status, answer["outcome"], answer["recorded"]) == (200, "grounded", True)
            assert [each.utterance_id for each in owner.appended] == ["d1"]
            for path in (
                "/state?turn=1",
                "/state?turn=9",
                "/records/it%27s%2Fso",
                "/affected?record=o1&record=it%27s%2Fso",
                "/affected?record=o1&x=%26",
            ):
                status, said, response = await here.ask("GET", HERE + path, token)
                directly = await there.ask("GET", HERE + path, token)
                assert (status, said) == directly[:2]
                assert response.headers["Content-Type"] == directly[2].headers["Content-Type"]
            assert (await here.check([], "sf_wrong"))[0] == 401
            assert asked.appended == []

    run(main())


def test_the_owner_asks_for_the_token_too(tmp_path: Any) -> None:
    """A token that it does not know any more is refused by it, and the refusal comes back."""
    token, line = token_for("acme")
    _, other = token_for("acme")
    write_tokens(tmp_path / "here", line)
    write_tokens(tmp_path / "there", other)

    async def main() -> None:
        asked = FakeConversations()
        async with (
            serving(owning(), tokens=tmp_path / "there") as there,
            serving(asked, tokens=tmp_path / "here") as here,
        ):
            asked.owner = Elsewhere(there.address)
            status, _, response = await here.ask("GET", f"{HERE}/state", token)
            assert (status, response.headers["WWW-Authenticate"]) == (401, "Bearer")

    run(main())


def test_two_workers_that_name_each_other_do_not_go_on_for_ever() -> None:
    """The second one sees that it was sent on, and tells the client to come again."""

    async def main() -> None:
        one, other = FakeConversations(), FakeConversations()
        async with serving(one) as here, serving(other) as there:
            one.owner, other.owner = Elsewhere(there.address), Elsewhere(here.address)
            status, problem, response = await here.ask("GET", f"{HERE}/state")
            assert (status, problem["type"]) == (503, "urn:standfast:problem:rebalancing")
            assert int(response.headers["Retry-After"]) >= 1

    run(main())


def test_an_owner_that_cannot_be_reached_is_soon_another() -> None:
    """503 with Retry-After, as in a rebalance."""

    async def main() -> None:
        asked = FakeConversations(Elsewhere("http://127.0.0.1:9"))
        async with serving(asked) as client:
            status, _, response = await client.ask("GET", f"{HERE}/state")
            assert (status, response.headers["Retry-After"]) == (503, "2")

    run(main())


def test_a_redirect_of_a_peer_is_not_followed() -> None:
    """The token goes to nobody else; the answer comes back as it is."""

    async def elsewhere(request: web.Request) -> web.Response:
        assert request.headers[FORWARDED] == "1"
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:9/"}, text="{}")

    async def main() -> None:
        route = web.get("/{path:v1/.*}", elsewhere)
        asked = FakeConversations()
        async with (
            serving(FakeConversations(), route, open_gate=False) as there,
            serving(asked) as here,
        ):
            asked.owner = Elsewhere(there.address)
            status, _, response = await here.ask("GET", f"{HERE}/state", allow_redirects=False)
            assert (status, response.headers.get("Location")) == (302, None)

    run(main())


@asynccontextmanager
async def beside_a_hung_owner() -> AsyncIterator[Client]:
    """A worker whose conversations belong to one that takes requests and answers none."""
    over = asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        await over.wait()
        return web.Response()

    asked = FakeConversations()
    route = web.route("*", "/{path:v1/.*}", hang)
    async with (
        serving(FakeConversations(), route, open_gate=False) as there,
        serving(asked, requests_burst=1_000, waiting_per_tenant_max=500) as here,
    ):
        asked.owner = Elsewhere(there.address)
        yield here
        over.set()


def test_a_hung_owner_is_waited_for_as_long_as_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check is pending where its draft has a name, and 503 where the owner was to give one."""
    monkeypatch.setattr(gate, "CHECK_SECONDS_MORE", 0.1)
    monkeypatch.setattr(gate, "VIEW_SECONDS_MORE", 0.1)

    async def main() -> None:
        async with beside_a_hung_owner() as here, asyncio.timeout(10):
            claims = [{"record": "o1"}]
            status, said = await here.check(claims, wait_ms=100, candidate_id="d1")
            assert (status, said["outcome"], said["recorded"]) == (200, "pending", False)
            assert said["candidate_id"] == "d1"
            status, said = await here.check(claims, wait_ms=100, record=False)
            assert (status, said["outcome"]) == (200, "pending")
            status, said = await here.check(claims, wait_ms=100)
            assert (status, said["type"]) == (503, "urn:standfast:problem:rebalancing")
            assert (await here.check(claims, wait_ms="soon"))[0] == 503
            for query in ("?wait_ms=100", "?wait_ms=%C2%B2"):
                status, said, response = await here.ask("GET", f"{HERE}/state{query}")
                assert (status, response.headers["Retry-After"]) == (503, "2")

    run(main())


def test_a_hung_owner_holds_so_many_requests_and_no_more() -> None:
    """Those beyond are told at once to come again: bodies and slots are there for others too."""

    async def main() -> None:
        async with beside_a_hung_owner() as here:
            asked = [
                asyncio.create_task(here.check([], wait_ms=20_000, record=False))
                for _ in range(WAITING_FOR_ONE_MAX + 1)
            ]
            (answered,), waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            status, said = answered.result()
            assert (status, said["type"]) == (503, "urn:standfast:problem:busy")
            assert len(waiting) == WAITING_FOR_ONE_MAX
            for each in waiting:
                each.cancel()

    run(main())


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("http://worker-1:8080", "http://worker-1:8080"),
        ("http://Worker-1/", "http://worker-1:80"),
        ("https://[::1]:9", "https://[::1]:9"),
    ],
)
def test_addresses_are_compared_by_scheme_host_and_port(given: str, origin: str) -> None:
    """However they are written."""
    settings = GateSettings(canonical_url=given, peers=frozenset({given}))
    assert settings.canonical_url == origin
    assert settings.peers == {origin}


@pytest.mark.parametrize(
    "given",
    ["worker:80", "ftp://h", "http://", "http://h/path", "http://u@h", "http://h:x", "http://h?q"],
)
def test_what_is_no_address_of_a_worker_is_refused(given: str) -> None:
    """Peers are an allow-list, so each must say exactly one place."""
    with pytest.raises(ValidationError, match="HOST:PORT"):
        GateSettings(peers=frozenset({given}))
