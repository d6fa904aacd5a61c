"""Whatever is wrong with a request, the answer is a problem, and says nothing of the inside."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import orjson
import pytest

from processor.app.web import gate
from schemas.http import PROBLEM_TYPE, ProblemDetails
from tests.web.fake import HERE, Client, FakeConversations, observe, run, serving, statement

CHECK = f"{HERE}/check"
JSON = {"Content-Type": "application/json"}


def conversation() -> FakeConversations:
    """One statement."""
    said = FakeConversations()
    said.say(statement("u1", observe("o1")))
    return said


async def problem(client: Client, method: str, path: str, **options: Any) -> tuple[int, str]:
    """Status and kind of an answer that must be a problem."""
    status, said, response = await client.ask(method, path, **options)
    assert response.headers["Content-Type"].partition(";")[0] == PROBLEM_TYPE
    read = ProblemDetails.model_validate_json(orjson.dumps(said))
    assert read.status == status
    return status, read.type.removeprefix("urn:standfast:problem:")


#    method, path, what is sent, status, kind
WRONG: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("GET", "/", {}, 404, "not-found"),
    ("GET", "/v1/tenants/acme", {}, 404, "not-found"),
    ("GET", f"{HERE}/nothing", {}, 404, "not-found"),
    ("GET", CHECK, {}, 405, "not-allowed"),
    ("POST", f"{HERE}/state", {"json": {}}, 405, "not-allowed"),
    ("DELETE", "/livez", {}, 405, "not-allowed"),
    ("POST", CHECK, {"data": b"{}"}, 415, "unsupported"),
    ("POST", CHECK, {"data": {"a": "b"}}, 415, "unsupported"),
    ("POST", CHECK, {"data": b"", "headers": JSON}, 400, "invalid"),
    ("POST", CHECK, {"data": b"\xff", "headers": JSON}, 400, "invalid"),
    ("POST", CHECK, {"data": b"[" * 100_000, "headers": JSON}, 400, "invalid"),
    ("POST", CHECK, {"data": b'{"text": "\\ud800"}', "headers": JSON}, 400, "invalid"),
    ("POST", CHECK, {"data": b'{"wait_ms": 1, "wait_ms": 2}', "headers": JSON}, 400, "invalid"),
    (
        "POST",
        CHECK,
        {"data": b"{}", "headers": {**JSON, "Content-Encoding": "gzip"}},
        400,
        "invalid",
    ),
    ("POST", CHECK, {"json": {"record": "yes"}}, 400, "invalid"),
    ("POST", CHECK, {"json": {"wait_ms": 30_001}}, 400, "invalid"),
    ("POST", CHECK, {"json": {"candidate_id": "a/b"}}, 400, "invalid"),
    ("POST", CHECK, {"json": {"claims": [{"record": "a", "records": ["b"]}]}}, 400, "invalid"),
    ("POST", CHECK, {"json": {"at": "2026-03-01T02:31:00"}}, 400, "invalid"),
    ("GET", "/v1/tenants/a%2Fb/conversations/c1/state", {}, 404, "no-conversation"),
    ("GET", "/v1/tenants/acme/conversations/c%2F1/state", {}, 404, "no-conversation"),
    ("GET", "/v1/tenants/acme/conversations/~/state", {}, 404, "no-conversation"),
    ("GET", "/v1/tenants/acme/conversations/%0A/state", {}, 404, "no-conversation"),
    ("GET", "/v1/tenants/acme/conversations/c1%0A/state", {}, 404, "no-conversation"),
    ("GET", f"/v1/tenants/acme/conversations/{'c' * 129}/state", {}, 404, "no-conversation"),
    ("GET", f"/v1/tenants/{'a' * 65}/conversations/c1/state", {}, 404, "no-conversation"),
    ("GET", "/v1/tenants/acme/conversations/../c1/state", {}, 404, "not-found"),
    ("GET", f"/{'x' * 9_000}", {}, 400, "invalid"),
    ("GET", f"{HERE}/state", {"headers": {"X-Long": "x" * 9_000}}, 400, "invalid"),
]


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "kind"),
    [pytest.param(*case, id=f"{case[4]}-{number}") for number, case in enumerate(WRONG)],
)
def test_every_refusal_is_a_problem(
    method: str, path: str, sent: dict[str, Any], status: int, kind: str
) -> None:
    """Of the right status and kind, and the next request is served."""

    async def main() -> None:
        async with serving(conversation()) as client:
            assert await problem(client, method, path, **sent) == (status, kind)
            assert (await client.get(f"{HERE}/state"))[0] == 200

    run(main())


def test_a_compressed_body_is_as_large_as_what_is_in_it() -> None:
    """A small one that grows beyond the limit is refused like a large one."""

    async def main() -> None:
        bomb = gzip.compress(b" " * 50_000_000)
        headers = {**JSON, "Content-Encoding": "gzip"}
        async with serving(conversation()) as client:
            assert (await problem(client, "POST", CHECK, data=bomb, headers=headers))[0] == 413

    run(main())


def test_a_method_that_is_not_allowed_is_told_which_are() -> None:
    """As HTTP asks."""

    async def main() -> None:
        async with serving(conversation()) as client:
            _, _, response = await client.ask("PUT", CHECK)
            assert response.headers["Allow"] == "POST"

    run(main())


def test_a_failure_says_nothing_of_the_inside(caplog: pytest.LogCaptureFixture) -> None:
    """500 with a fixed text, though the exception has one of its own."""

    async def main() -> None:
        said = conversation()

        async def broken(*_: Any) -> Any:
            raise RuntimeError("the secret of claim o1")

        said.copied = broken  # type: ignore[method-assign] # it fails
        async with serving(said) as client:
            status, told, _ = await client.ask("GET", f"{HERE}/state")
            assert (status, told["type"]) == (500, "urn:standfast:problem:failed")
            assert "secret" not in orjson.dumps(told).decode()
            assert (await client.check([{"record": "o1"}]))[0] == 200

    run(main())


def test_a_body_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that announces a body and sends none gives its slot back."""
    monkeypatch.setattr(gate, "READ_SECONDS_MAX", 0.1)

    async def main() -> bytes:
        async with serving(conversation()) as client:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", int(client.address.rpartition(":")[2])
            )
            head = f"POST {CHECK} HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n"
            writer.write(head.encode())
            answer = await reader.readuntil(b"}")
            writer.close()
            return answer

    assert b" 408 " in run(main()).splitlines()[0]


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: h\r\n\r\n",
    ],
)
def test_what_is_no_http_is_a_problem_too(sent: bytes) -> None:
    """The connection is answered and closed, and the server goes on."""

    async def main() -> bytes:
        async with serving(conversation()) as client:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", int(client.address.rpartition(":")[2])
            )
            writer.write(sent)
            answer = await reader.read()
            writer.close()
            assert (await client.get("/livez"))[0] == 200
            return answer

    head, _, body = run(main()).partition(b"\r\n\r\n")
    assert b" 400 " in head.splitlines()[0]
    assert orjson.loads(body)["type"] == "urn:standfast:problem:invalid"
