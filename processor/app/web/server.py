"""The HTTP server of a worker: where it listens, and what it does with a request that is none.

It starts before the worker joins its group, so that a long recovery looks like one, and ends before
the worker drains: what is being answered is answered first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, ClassVar, final

import structlog
from aiohttp import web

from processor.app.conversations import Conversations
from processor.app.errors import SettingsError
from processor.app.gate_settings import GateSettings
from processor.app.tenants import PLAIN, Tenants
from processor.app.tracing import Tracing
from processor.app.web.gate import Gate
from processor.app.web.health import Health
from processor.app.web.problem_details import Kind, problem_response, problems
from processor.app.web.routing import Forwarder
from processor.app.web.tokens import Tokens
from schemas.openapi import openapi_document
from schemas.wire import canonical_bytes

_log = structlog.get_logger(__name__)

SERVER = "standfast"
"""No answer tells versions."""
SHUTDOWN_SECONDS_MAX = 5.0
CONNECTIONS_MAX = 800
"""Below what a process may usually open (1,024 files), with the brokers and the store beside."""
IDLE_SECONDS_MAX = 15.0
WATCH_SECONDS = 2.0
_NO_ACCESS_LOG: dict[str, Any] = {"access_log": None}


@final
class WebServer:
    """Use it as `async with WebServer(...)`; it does nothing if no port is set.

    `extra_routes` are served beside its own, without a token; `on_lag` is told how late the event
    loop wakes, in seconds.
    """

    def __init__(
        self,
        settings: GateSettings,
        conversations: Conversations,
        extra_routes: Sequence[web.RouteDef] = (),
        tenants: Tenants = PLAIN,
        on_lag: Callable[[float], None] = lambda _: None,
        tracing: Tracing | None = None,
    ) -> None:
        self._settings = settings
        self._conversations = conversations
        self._extra_routes = extra_routes
        self._tenants = tenants
        self._on_lag = on_lag
        self._tracing = tracing or Tracing()
        self._stack = AsyncExitStack()
        self.port = 0

    async def __aenter__(self) -> WebServer:
        if self._settings.listen_port is None:
            return self
        async with AsyncExitStack() as stack:
            app = web.Application(
                middlewares=[problems], client_max_size=self._settings.body_bytes_max
            )
            health = Health(self._conversations, on_lag=self._on_lag)
            _watch(stack, health.watch())
            app.add_routes(
                [
                    web.get("/livez", health.livez),
                    web.get("/readyz", health.readyz),
                    web.get("/openapi.json", _openapi),
                    *self._extra_routes,
                    *await self._gate_routes(stack),
                ]
            )
            host, port = self._settings.listen_host, self._settings.listen_port
            self.port = await listen(stack, app, host, port)
            self._stack = stack.pop_all()
        _log.info("listening", host=self._settings.listen_host, port=self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Answer what is being answered, and nothing more."""
        await self._stack.aclose()

    async def _gate_routes(self, stack: AsyncExitStack) -> list[web.RouteDef]:
        """None if nobody could be let in."""
        settings = self._settings
        if settings.tokens is None and not settings.open_gate:
            _log.warning("gate_closed", reason="no tokens are configured")
            return []
        tokens = Tokens(settings.tokens)
        tokens.load()
        _watch(stack, tokens.watch())
        forwarder = await stack.enter_async_context(Forwarder())
        gate = Gate(settings, self._conversations, tokens, forwarder, self._tenants, self._tracing)
        return gate.routes()


async def listen(stack: AsyncExitStack, app: web.Application, host: str, port: int) -> int:
    """Serve until the stack is closed; gives the port. Raises SettingsError."""
    app.on_response_prepare.append(_name_no_versions)
    runner = web.AppRunner(app, shutdown_timeout=SHUTDOWN_SECONDS_MAX, **_NO_ACCESS_LOG)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    requests, loop = runner.server, asyncio.get_running_loop()
    assert requests is not None
    try:
        listening = await loop.create_server(
            lambda: _Connection(requests, loop=loop, **_NO_ACCESS_LOG), host, port
        )
    except OSError as taken:
        raise SettingsError(f"cannot listen on {host}:{port}: {taken.strerror}") from taken
    except UnicodeError as unnamed:
        raise SettingsError(f"cannot listen on {host}:{port}: no host has this name") from unnamed
    stack.callback(listening.close)
    return int(listening.sockets[0].getsockname()[1])


@final
class _Connection(web.RequestHandler):
    """A client's connection; what is no HTTP, or fails, is answered by a problem as well.

    One on which no request has been complete for IDLE_SECONDS_MAX is closed, and so is one that is
    more than CONNECTIONS_MAX: whoever has no token must not take the place of those who have.
    """

    open_connections: ClassVar[int] = 0
    _watching: asyncio.TimerHandle | None = None
    _idle_since: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, if there is room for it."""
        super().connection_made(transport)
        _Connection.open_connections += 1
        self._watch()
        if _Connection.open_connections > CONNECTIONS_MAX:
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is closed."""
        _Connection.open_connections -= 1
        if self._watching is not None:
            self._watching.cancel()
        super().connection_lost(exc)

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        if self._current_request is not None:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = loop.time()
        elif loop.time() - self._idle_since > IDLE_SECONDS_MAX:
            self.force_close()
            return
        self._watching = loop.call_later(WATCH_SECONDS, self._watch)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Say that it failed, and not why; that is in the log."""
        if request.writer.output_size > 0:
            raise ConnectionError("the answer was begun already")
        if status < 500:
            _log.info("request_unreadable", error=type(exc).__name__)
            response = problem_response(Kind.INVALID, status=status)
        else:
            _log.error("request_failed", method=request.method, exc_info=exc)
            response = problem_response(Kind.FAILED)
        response.headers["Server"] = SERVER  # what prepares the answers of routes is not asked
        response.force_close()
        return response


def _watch(stack: AsyncExitStack, work: Any) -> None:
    """Run it beside the server, as long as that runs."""
    task = asyncio.create_task(work)
    stack.callback(task.cancel)


async def _name_no_versions(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = SERVER


async def _openapi(_: web.Request) -> web.Response:
    return web.Response(body=canonical_bytes(openapi_document()), content_type="application/json")
