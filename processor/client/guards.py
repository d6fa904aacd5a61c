"""The two guards: all that they do themselves is to send and to wait.

What is sent, whether again, and what a reply means is decided in `exchange.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, Self, TypeVar, final

import httpx2

from .answers import Alert, Answer
from .deadline import Until, client_until
from .exchange import Came, Give, Pause, Send, Step
from .questions import START, Claim, Lost, Reply
from .settings import GuardSettings

Doing = TypeVar("Doing")
Result = TypeVar("Result")

_LATE = Lost("no answer came in time")
_TOO_LARGE = Lost("the answer is larger than this guard reads", is_final=True)


def _lost(error: httpx2.RequestError) -> Lost:
    """Only the kind of the error: its text and its request may hold the token."""
    return Lost(f"the gate could not be asked: {type(error).__name__}")


def _options(send: Send, guard: GuardSettings) -> dict[str, Any]:
    headers = {**guard._token.header(), "Accept-Encoding": "identity"}
    if send.request.body is not None:
        headers["Content-Type"] = "application/json"
    return {
        "method": send.request.method,
        "url": guard.address + send.request.path,
        "content": send.request.body,
        "headers": headers,
        "timeout": send.seconds,
    }


def _reply(response: httpx2.Response, body: bytes) -> Reply:
    return Reply(response.status_code, body, response.headers.get("Retry-After"))


@final
class Guard(GuardSettings):
    """Asks a gate, and blocks meanwhile; threads may share it. Use it as `with Guard(...)`.

    `seconds` holds for the whole, also if headers trickle or a draft is taken slowly. Looking up
    the gate's name, and a `transport` of one's own, may take longer.
    """

    def __init__(
        self, *args: Any, transport: httpx2.BaseTransport | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self._until = Until()
        self._http = client_until(self._until, transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def check(
        self,
        conversation: str,
        claims: Sequence[Claim] | None = None,
        *,
        text: str = "",
        after: str | None = None,
        candidate_id: str | None = None,
    ) -> Answer:
        """Whether a draft is grounded in the state as it is now; nothing is written.

        `after` is an utterance that must be folded first. Raises RefusedError.
        """
        return self._run(self._asked(conversation, claims, text, after, candidate_id, record=False))

    def record(
        self,
        conversation: str,
        claims: Sequence[Claim] | None = None,
        *,
        text: str = "",
        after: str | None = None,
        candidate_id: str | None = None,
    ) -> Answer:
        """The same through the log: draft and verdict stay there, and an audit finds them.

        Under the same `candidate_id` the same draft has the same answer. Raises RefusedError.
        """
        return self._run(self._asked(conversation, claims, text, after, candidate_id, record=True))

    def alerts(
        self, conversation: str, since: str = START, *, every_seconds: float | None = None
    ) -> Iterator[Alert]:
        """The alerts of a conversation behind a place; with `every_seconds` also those to come.

        Raises RefusedError, AlertsMissedError, and UnavailableError if it does not follow.
        """
        with closing(self._followed(conversation, since, every_seconds)) as steps:
            came: Came = None
            while (step := _next(steps, came)) is not None:
                came = None
                if isinstance(step, Give):
                    yield step.alert
                else:
                    came = self._do(step)

    def _run(self, steps: Generator[Step, Came, Answer]) -> Answer:
        with closing(steps):
            came: Came = None
            while not isinstance(step := _next(steps, came), Answer):
                came = self._do(step)
            return step

    def _do(self, step: Step) -> Came:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        self._until.at = deadline = time.monotonic() + step.seconds
        body = bytearray()
        try:
            with self._http.stream(**_options(step, self)) as response:
                for part in response.iter_bytes():
                    body += part
                    if len(body) > self.body_bytes_max:
                        return _TOO_LARGE
                    if time.monotonic() > deadline:
                        return _LATE
                return _reply(response, bytes(body))
        except httpx2.TimeoutException:
            return _LATE
        except httpx2.RequestError as error:
            return _lost(error)


@final
class AsyncGuard(GuardSettings):
    """Asks a gate without blocking the event loop. Use it as `async with AsyncGuard(...)`."""

    def __init__(
        self, *args: Any, transport: httpx2.AsyncBaseTransport | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self._http = httpx2.AsyncClient(transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def check(
        self,
        conversation: str,
        claims: Sequence[Claim] | None = None,
        *,
        text: str = "",
        after: str | None = None,
        candidate_id: str | None = None,
    ) -> Answer:
        """As `Guard.check`."""
        return await self._run(
            self._asked(conversation, claims, text, after, candidate_id, record=False)
        )

    async def record(
        self,
        conversation: str,
        claims: Sequence[Claim] | None = None,
        *,
        text: str = "",
        after: str | None = None,
        candidate_id: str | None = None,
    ) -> Answer:
        """As `Guard.record`."""
        return await self._run(
            self._asked(conversation, claims, text, after, candidate_id, record=True)
        )

    async def alerts(
        self, conversation: str, since: str = START, *, every_seconds: float | None = None
    ) -> AsyncIterator[Alert]:
        """As `Guard.alerts`."""
        with closing(self._followed(conversation, since, every_seconds)) as steps:
            came: Came = None
            while (step := _next(steps, came)) is not None:
                came = None
                if isinstance(step, Give):
                    yield step.alert
                else:
                    came = await self._do(step)

    async def _run(self, steps: Generator[Step, Came, Answer]) -> Answer:
        with closing(steps):
            came: Came = None
            while not isinstance(step := _next(steps, came), Answer):
                came = await self._do(step)
            return step

    async def _do(self, step: Step) -> Came:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        body = bytearray()
        try:
            async with (
                asyncio.timeout(step.seconds),
                self._http.stream(**_options(step, self)) as response,
            ):
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > self.body_bytes_max:
                        return _TOO_LARGE
                return _reply(response, bytes(body))
        except (TimeoutError, httpx2.TimeoutException):
            return _LATE
        except httpx2.RequestError as error:
            return _lost(error)


def _next(steps: Generator[Doing, Came, Result], came: Came) -> Doing | Result:
    """What is to be done next, or the result."""
    try:
        return steps.send(came)
    except StopIteration as ended:
        result: Result = ended.value
        return result
