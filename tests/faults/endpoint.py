"""An endpoint of a scripted model over HTTP, that can be told to fail, and who asks it."""

from __future__ import annotations

import asyncio
from typing import final

import aiohttp
import orjson
from aiohttp import web

from processor.engine.conversation import Conversation
from processor.interpreter.port import EndpointUnavailable, Interpreted, Refused
from schemas.utterance import Utterance
from tests.faults.script import read
from tests.http_server import HttpServer

MODES = ("hangs", "429", "500", "garbage", "closes")
ANSWER_SECONDS_MAX = 1.0


@final
class Endpoint(HttpServer):
    """Answers `{}` in mode "works"; counts the calls of each mode."""

    def __init__(self) -> None:
        super().__init__("/", self._answer)
        self.mode = "works"
        self.calls: dict[str, int] = {}

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        mode = self.mode
        self.calls[mode] = self.calls.get(mode, 0) + 1
        match mode:
            case "hangs":
                await asyncio.sleep(10 * ANSWER_SECONDS_MAX)
            case "429":
                return web.Response(status=429, headers={"Retry-After": "0.2"})
            case "500":
                return web.Response(status=500)
            case "garbage":
                return web.Response(body=b"\x00<html>busy", content_type="application/json")
            case "closes":
                assert request.transport is not None
                request.transport.abort()
        return web.json_response({})


@final
class AskingInterpreter:
    """Asks the endpoint before it reads; whatever is no proper answer is the endpoint's fault."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def interpret(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """Read an utterance. Raises EndpointUnavailable."""
        limit = aiohttp.ClientTimeout(total=ANSWER_SECONDS_MAX)
        try:
            async with (
                aiohttp.ClientSession(timeout=limit) as session,
                session.post(self._url, json={"utterance": utterance.utterance_id}) as answer,
            ):
                if answer.status != 200:
                    after = answer.headers.get("Retry-After")
                    raise EndpointUnavailable(
                        str(answer.status), None if after is None else float(after)
                    )
                orjson.loads(await answer.read())
        except (aiohttp.ClientError, TimeoutError, orjson.JSONDecodeError) as failure:
            raise EndpointUnavailable(type(failure).__name__) from failure
        return read(utterance)
