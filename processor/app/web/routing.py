"""Forwarding a request to the worker that owns its conversation.

Redirects would lose the Authorization header, so the request is sent on as it is: method, path,
query, body, token. It is marked, and a worker that gets a marked request forwards it no further.
An owner that does not answer is not waited for longer than the client would be made to wait, nor by
so many requests that they would take the place of those for others.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import final

import aiohttp
import structlog
from aiohttp import web
from yarl import URL

from processor.app.web.problem_details import RETRY_SECONDS, Kind, ProblemRaised, rebalancing

_log = structlog.get_logger(__name__)

FORWARDED = "Standfast-Forwarded"
"""Marks a request that another worker sent on."""
CONNECT_SECONDS_MAX = 2.0
WAITING_FOR_ONE_MAX = 128
"""How many requests may wait for one owner: each holds its body, and one of all slots."""
_SENT_ON = ("Authorization", "Content-Type", "Accept", "traceparent", "tracestate")
_SENT_BACK = ("Content-Type", "Retry-After", "WWW-Authenticate", "Allow")


class OwnerSilent(Exception):  # noqa: N818 - it says what happened
    """The owner has not answered in time; whether it will have done what was asked is not known."""


@final
class Forwarder:
    """Sends requests on to other workers; use it as `async with Forwarder()`."""

    async def __aenter__(self) -> Forwarder:
        self._waiting: Counter[str] = Counter()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),  # it is `_waiting` that is bounded
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def forward(
        self,
        request: web.Request,
        body: bytes,
        address: str,
        seconds_max: float,
        carried: Mapping[str, str],
    ) -> web.Response:
        """The owner's answer, if it comes in time; `carried` are headers of our own beside its.

        Raises OwnerSilent.
        Raises ProblemRaised if the owner cannot be reached, is not one, or is waited for by many.
        """
        if FORWARDED in request.headers:
            raise rebalancing()  # two workers think that it is the other's
        if self._waiting[address] >= WAITING_FOR_ONE_MAX:
            raise ProblemRaised(Kind.BUSY, retry_s=RETRY_SECONDS)
        self._waiting[address] += 1
        try:
            async with asyncio.timeout(seconds_max):
                return await self._send(request, body, address, carried)
        except aiohttp.ClientError as failure:
            _log.info("owner_not_reached", address=address, error=type(failure).__name__)
            raise rebalancing() from failure
        except TimeoutError as silent:
            _log.info("owner_silent", address=address, seconds=round(seconds_max, 1))
            raise OwnerSilent from silent
        finally:
            self._waiting[address] -= 1

    async def _send(
        self, request: web.Request, body: bytes, address: str, carried: Mapping[str, str]
    ) -> web.Response:
        headers = {name: request.headers[name] for name in _SENT_ON if name in request.headers}
        async with self._session.request(
            request.method,
            URL(address + request.rel_url.raw_path_qs, encoded=True),
            headers={**headers, **carried, FORWARDED: "1"},
            data=body or None,
            allow_redirects=False,
        ) as answer:
            return web.Response(
                status=answer.status,
                body=await answer.read(),
                headers={
                    name: answer.headers[name] for name in _SENT_BACK if name in answer.headers
                },
            )
