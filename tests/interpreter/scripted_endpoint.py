"""An endpoint over HTTP that speaks OpenAI's protocol, with a scripted model behind it.

It knows the four dialects as real servers do: those that it does not take it refuses as servers
refuse them, and it can be told to ignore the schema, to fail, to dawdle and to hang up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import orjson
from aiohttp import web

from tests.http_server import HttpServer

Json = dict[str, Any]

ALL_DIALECTS = frozenset({"json_schema", "json_object", "tool", "text"})
MODEL = "scripted-1"
KEY = "sk-secret-0123456789"


class Said(NamedTuple):
    """What the model says: the whole of a choice, but for where the text stands."""

    text: str | None
    finish_reason: str = "stop"
    refusal: str | None = None
    usage: tuple[int, int] | None = (100, 20)


class Status(NamedTuple):
    """An answer of the server instead of the model's."""

    status: int
    code: str | None = None
    retry_after: str | None = None
    message: str = "no"
    parameter: str | None = None


class Raw(NamedTuple):
    """A body that is no completion."""

    body: bytes
    status: int = 200


class Slow(NamedTuple):
    """Another answer after some seconds, or blanks that come all the while."""

    seconds: float
    then: Said = Said("{}")
    trickles: bool = False


class HangUp(NamedTuple):
    """The connection ends: at once, or in the midst of the body."""

    in_body: bool = False


Step = Said | Status | Raw | Slow | HangUp
Script = Callable[[Json], Step]


def operations(*listed: Json, rationale: str = "because") -> Said:
    """A proper reply to a statement."""
    return Said(orjson.dumps({"rationale": rationale, "operations": listed}).decode())


def claims(*listed: Json) -> Said:
    """A proper reply to a draft."""
    return Said(orjson.dumps({"rationale": "because", "claims": listed}).decode())


def dialect_of(body: Json) -> str:
    """Which dialect a request is in."""
    if "tools" in body:
        return "tool"
    format_ = body.get("response_format")
    return "text" if format_ is None else str(format_["type"])


@final
@dataclass
class ScriptedEndpoint(HttpServer):
    """Answers with the steps one after the other, then with `always`; keeps what it was asked.

    Self-tests are answered as the dialects say and stand not among what was asked.
    """

    steps: list[Step] = field(default_factory=list)
    always: Script = lambda _: operations()
    dialects: frozenset[str] = ALL_DIALECTS
    ignores_schema: frozenset[str] = frozenset()
    """Dialects that it takes without keeping to the schema."""
    unsupported: int = 422
    """The status for a dialect that it does not take."""
    refuses: tuple[str, ...] = ()
    """Parameters that it does not take."""
    key: str | None = KEY
    hangs_in_tests: bool = False
    """Whether its model takes a while over a self-test."""
    is_away: bool = False
    """Whether it answers 503 to everything."""
    asked: list[Json] = field(default_factory=list)
    tests: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__("/v1/chat/completions", self._answer)

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = orjson.loads(await request.read())
        if self.is_away:
            return _refusal(Status(503))
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            message = f"Incorrect API key provided: {request.headers.get('Authorization')}"
            return _refusal(Status(401, "invalid_api_key", message=message))
        unknown = [name for name in self.refuses if name in body]
        if unknown:
            return _refusal(Status(400, "unsupported_parameter", parameter=unknown[0]))
        dialect = dialect_of(body)
        if dialect not in self.dialects:
            return _refusal(Status(self.unsupported, "unsupported"))
        tested = self._self_test(body, dialect)
        if tested is not None:
            await asyncio.sleep(2.0 * self.hangs_in_tests)
            return _completion(tested, dialect, body)
        self.asked.append(body)
        step = self.steps.pop(0) if self.steps else self.always(body)
        return await self._play(request, step, dialect, body)

    def _self_test(self, body: Json, dialect: str) -> Said | None:
        """The answer to a self-test; None to anything else."""
        words = orjson.dumps(body).decode()
        told = body["messages"][-1]["content"]
        if "Nothing was said" in told:
            self.tests.append(body)
            return operations()
        if '"enum":["standfast"]' not in words.replace('\\"', '"'):
            return None
        self.tests.append(body)
        if dialect not in self.ignores_schema:
            return Said('{"word": "standfast"}')
        return Said("Gladly! It is green." if dialect == "text" else '{"colour": "green"}')

    async def _play(
        self, request: web.Request, step: Step, dialect: str, body: Json
    ) -> web.StreamResponse:
        match step:
            case Said():
                return _completion(step, dialect, body)
            case Status():
                return _refusal(step)
            case Raw():
                return web.Response(status=step.status, body=step.body)
            case HangUp(in_body=False):
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case HangUp():
                return await _half(request)
            case Slow(trickles=True):
                return await _trickle(request, step)
            case Slow():
                await asyncio.sleep(step.seconds)
                return _completion(step.then, dialect, body)


def _completion(said: Said, dialect: str, body: Json) -> web.Response:
    message: Json = {"role": "assistant", "content": said.text, "refusal": said.refusal}
    if dialect == "tool" and said.text is not None:
        function = {"name": body["tools"][0]["function"]["name"], "arguments": said.text}
        message["content"] = None
        message["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
    completion: Json = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": said.finish_reason}],
    }
    if said.usage is not None:
        read, wrote = said.usage
        completion["usage"] = {
            "prompt_tokens": read,
            "completion_tokens": wrote,
            "total_tokens": read + wrote,
        }
    return web.json_response(completion)


def _refusal(step: Status) -> web.Response:
    error = {"code": step.code, "message": step.message, "param": step.parameter, "type": "error"}
    headers = {} if step.retry_after is None else {"Retry-After": step.retry_after}
    return web.json_response({"error": error}, status=step.status, headers=headers)


async def _half(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"id": "1", "choices": [{"mess')
    assert request.transport is not None
    request.transport.close()
    return response


async def _trickle(request: web.Request, step: Slow) -> web.StreamResponse:
    """Every byte comes well within a read time-out; all of them together do not."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    for _ in range(int(step.seconds / 0.05)):
        await response.write(b" ")
        await asyncio.sleep(0.05)
    return response
