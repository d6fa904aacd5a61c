"""Asks an endpoint that speaks the protocol of OpenAI: theirs, vLLM, Ollama, llama.cpp, a gateway.

Whose fault a failure is decides what becomes of the utterance. 400, 413 and 422 say that this very
request cannot be answered; everything else that goes wrong is the endpoint's fault, and is tried
again: here a few times, then by whoever waits for the endpoint. The key stands in no message: what
is told of a failure is its status and its code, never the words of the endpoint.
"""

from __future__ import annotations

import asyncio
import email.utils
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import openai
from pydantic import SecretStr

from processor.interpreter.dialects import NoCompletion, answer_of, body_of
from processor.interpreter.limits import Breaker, Pauses
from processor.interpreter.port import EndpointUnavailable
from processor.interpreter.probe import find_shape
from processor.interpreter.request import (
    Answer,
    Dialect,
    ModelRequest,
    RequestRefused,
    ServerFailure,
    Shape,
)

_REQUEST_IS_AT_FAULT = (400, 413, 422)
_PASSING = (408, 409, 429, 503)
_CODE = re.compile(r"[a-z_]{1,64}")
OPENAI_URL = "https://api.openai.com/v1"
_NO_KEY = "none"
"""The client wants a key; a server that asks for none ignores it."""
RETRY_AFTER_S_MAX = 30.0
"""Who is told to wait longer gives its place to others first."""
LEFT_ALONE_S_MAX = 3_600.0
"""Longer than that nobody waits before the next try, whatever was asked for."""


@final
class Endpoint(NamedTuple):
    """Where the model is, and how long one call may take; without `base_url` it is OpenAI's."""

    base_url: str | None
    api_key: SecretStr | None
    call_s_max: float = 60.0


class _Passing(EndpointUnavailable):
    """It may go well when it is tried again soon."""


@final
@dataclass
class OpenAIModel:
    """One endpoint and one model; `wanted` is the shape, but for a dialect that is to be found."""

    endpoint: Endpoint
    wanted: Shape
    dialects: tuple[Dialect, ...]
    pauses: Pauses = field(default_factory=Pauses)
    breaker: Breaker = field(default_factory=Breaker)
    name: str = "openai"

    def __post_init__(self) -> None:
        key = self.endpoint.api_key
        self._client = openai.AsyncOpenAI(
            base_url=self.endpoint.base_url or OPENAI_URL,  # it would take an empty setting for one
            api_key=_NO_KEY if key is None else key.get_secret_value(),
            timeout=self.endpoint.call_s_max,
            max_retries=0,  # the pauses are ours: they can be tested, and they know the breaker
        )
        self._found: Shape | None = None
        self._finding = asyncio.Lock()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def shape(self) -> Shape:
        """The shape that the endpoint proved to understand; it is asked once."""
        async with self._finding:
            if self._found is None:
                self._found = await find_shape(self._test, self.wanted, self.dialects)
        return self._found

    async def _test(self, request: ModelRequest) -> Answer:
        """The answer to a self-test, whose failures say nothing about the breaker's endpoint."""
        return await self._ask(request, Breaker(failures_max=1 + self.pauses.tries_max))

    async def ask(self, request: ModelRequest) -> Answer:
        """One answer, after some tries. Raises EndpointUnavailable or RequestRefused."""
        return await self._ask(request, self.breaker)

    async def _ask(self, request: ModelRequest, breaker: Breaker) -> Answer:
        body = body_of(request)
        for tried in range(1, self.pauses.tries_max + 1):
            breaker.check()
            try:
                answer = await self._call(request, body)
            except RequestRefused:
                breaker.answered()
                raise
            except EndpointUnavailable as failure:
                breaker.failed()
                after_s = failure.retry_after_s
                is_last = tried == self.pauses.tries_max or (after_s or 0.0) > RETRY_AFTER_S_MAX
                if is_last or not isinstance(failure, _Passing | ServerFailure):
                    raise
                await self.pauses.pause(tried, after_s)
            else:
                breaker.answered()
                return answer
        raise AssertionError("the last try returns or raises")

    async def _call(self, request: ModelRequest, body: dict[str, Any]) -> Answer:
        """One call. Causes are not chained: they hold what was sent, the key among it."""
        limit_s = self.endpoint.call_s_max
        started = time.monotonic()
        try:
            async with asyncio.timeout(limit_s):  # the client's own starts anew with every byte
                raw = await self._client.chat.completions.with_raw_response.create(**body)
                content: bytes = raw.content
        except (openai.APITimeoutError, TimeoutError):
            raise _Passing(f"no answer within {limit_s:g} s") from None
        except openai.APIConnectionError as failure:
            raise _Passing(f"no connection: {type(failure.__cause__).__name__}") from None
        except openai.APIStatusError as refusal:
            raise _failure(refusal) from None
        except openai.APIError as failure:
            raise _Passing(type(failure).__name__) from None
        answer = answer_of(request, content, round((time.monotonic() - started) * 1_000))
        if isinstance(answer, NoCompletion):
            raise ServerFailure(answer.problem)
        return answer


def _failure(refusal: openai.APIStatusError) -> EndpointUnavailable | RequestRefused:
    """What a status says about whose fault it is."""
    status = refusal.response.status_code
    details = refusal.body if isinstance(refusal.body, Mapping) else {}
    problem = " ".join(["HTTP", str(status), *_word(details.get("code"))])
    if status in _REQUEST_IS_AT_FAULT:
        refused = RequestRefused(problem)
        refused.parameter = _parameter(details)
        return refused
    after_s = _retry_after_s(refusal.response.headers)
    if status in _PASSING:
        return _Passing(problem, after_s)
    if status >= 500:
        return ServerFailure(problem, after_s)
    return EndpointUnavailable(problem)


def _word(written: object) -> list[str]:
    return [written] if isinstance(written, str) and _CODE.fullmatch(written) else []


def _parameter(details: Mapping[str, object]) -> str | None:
    """Which parameter of the request a server names as the one that it does not take."""
    named = details.get("param")
    if isinstance(named, str):
        return named
    message = str(details.get("message"))
    known = ("temperature", "seed", "max_tokens", "max_completion_tokens")
    return next((name for name in known if re.search(rf"\b{name}\b", message)), None)


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the endpoint wants to be left alone: seconds, or a date."""
    written = headers.get("retry-after")
    if written is None:
        return None
    try:
        asked_for = float(written) if _is_number(written) else _seconds_until(written)
        return min(max(0.0, asked_for), LEFT_ALONE_S_MAX)
    except (ValueError, OverflowError):
        return None


def _is_number(written: str) -> bool:
    return re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,9})?", written) is not None


def _seconds_until(date: str) -> float:
    return email.utils.parsedate_to_datetime(date).timestamp() - time.time()
