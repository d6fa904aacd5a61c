"""Forwarding a request to the worker that owns its conversation.

Redirects would lose the Authorization header, so the request is sent on as it is: method, path,
query, body, token. It is marked, and a worker that gets a marked request forwards it no further.
"""

from __future__ import annotations

from typing import final

import aiohttp
import structlog
from aiohttp import web
from yarl import URL

from processor.app.web.problem_details import rebalancing
from schemas.http import WAIT_MS_MAX

_log = structlog.get_logger(__name__)

FORWARDED = "Standfast-Forwarded"
"""Marks a request that another worker sent on."""
TOTAL_SECONDS_MAX = WAIT_MS_MAX / 1_000 + 15.0
CONNECT_SECONDS_MAX = 2.0
_SENT_ON = ("Authorization", "Content-Type", "Accept", "traceparent", "tracestate")
_SENT_BACK = ("Content-Type", "Retry-After", "WWW-Authenticate", "Allow")


@final
class Forwarder:
    """Sends requests on to other workers; use it as `async with Forwarder()`."""

    async def __aenter__(self) -> Forwarder:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(
                total=TOTAL_SECONDS_MAX, sock_connect=CONNECT_SECONDS_MAX
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def forward(self, request: web.Request, body: bytes, address: str) -> web.Response:
        """The owner's answer. Raises ProblemRaised if the owner cannot be reached or is not one."""
        if FORWARDED in request.headers:
            raise rebalancing()  # two workers think that it is the other's
        headers = {name: request.headers[name] for name in _SENT_ON if name in request.headers}
        try:
            async with self._session.request(
                request.method,
                URL(address + request.rel_url.raw_path_qs, encoded=True),
                headers={**headers, FORWARDED: "1"},
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
        except (aiohttp.ClientError, TimeoutError) as failure:
            _log.info("owner_not_reached", address=address, error=type(failure).__name__)
            raise rebalancing() from failure
