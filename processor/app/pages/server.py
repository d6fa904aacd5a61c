"""The server of the pages: who may look, and where it listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple, final

from aiohttp import web

from processor.app.errors import SettingsError
from processor.app.gate_settings import is_loopback
from processor.app.pages.site import Site
from processor.app.pages.source import Source
from processor.app.web.problem_details import problems
from processor.app.web.server import listen
from processor.app.web.tokens import Tokens

BODY_BYTES_MAX = 4_096
"""Nobody sends more than a token."""


@final
class Place(NamedTuple):
    """Where to listen, and the file of tokens; without one, only this machine is let in."""

    host: str
    port: int
    tokens: Path | None


@asynccontextmanager
async def serving(
    source: Source, place: Place, extra_routes: Sequence[web.RouteDef] = ()
) -> AsyncIterator[str]:
    """Serve as long as this is open; gives the address. Raises SettingsError.

    /livez and the `extra_routes` are answered without a token.
    """
    if place.tokens is None and not is_loopback(place.host):
        raise SettingsError(
            f"{place.host}: without tokens only this machine may look: give --tokens FILE, "
            "or a loopback address"
        )
    tokens = Tokens(place.tokens)
    tokens.load()
    async with AsyncExitStack() as stack:
        thread = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="pages"))
        watch = asyncio.create_task(tokens.watch())
        stack.callback(watch.cancel)
        app = web.Application(middlewares=[problems], client_max_size=BODY_BYTES_MAX)
        app.add_routes([web.get("/livez", _livez), *extra_routes])
        app.add_routes(Site(source, tokens, thread).routes())
        port = await listen(stack, app, place.host, place.port)
        host = f"[{place.host}]" if ":" in place.host else place.host
        yield f"http://{host}:{port}/"


async def _livez(_: web.Request) -> web.Response:
    """That the event loop runs; a copier that fails ends the process."""
    return web.json_response({"alive": True}, headers={"Cache-Control": "no-store"})
