"""How the worker is, for whoever restarts it or sends it requests; neither asks anybody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from processor.app.conversations import Conversations
from schemas.contract import Contract
from schemas.http import Liveness
from schemas.wire import canonical_bytes

LAG_SECONDS_MAX = 10.0
"""A loop that was held up for that long misses heartbeats, and the group goes on without it."""
_EVERY_SECONDS = 0.5


@final
@dataclass
class Health:
    """Answers /livez and /readyz; `on_lag` is told every measured lag of the loop, in seconds."""

    conversations: Conversations
    loop_lag_s: float = 0.0
    on_lag: Callable[[float], None] = field(default=lambda _: None)

    async def watch(self) -> None:
        """Measure how late the event loop wakes, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(_EVERY_SECONDS)
            self.loop_lag_s = max(0.0, loop.time() - before - _EVERY_SECONDS)
            self.on_lag(self.loop_lag_s)

    async def livez(self, _: web.Request) -> web.Response:
        """Whether the loop and the consumer's thread run."""
        consumer_runs = self.conversations.consumer_runs()
        alive = consumer_runs and self.loop_lag_s < LAG_SECONDS_MAX
        said = Liveness(
            alive=alive, loop_lag_ms=int(self.loop_lag_s * 1_000), consumer_runs=consumer_runs
        )
        return _answer(said, alive)

    async def readyz(self, _: web.Request) -> web.Response:
        """Whether the worker does its work, and what is amiss."""
        said = self.conversations.readiness()
        return _answer(said, said.ready)


def metrics_route(text: Callable[[], bytes]) -> web.RouteDef:
    """Where Prometheus asks."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return web.get("/metrics", metrics)


def _answer(said: Contract, is_well: bool) -> web.Response:
    return web.Response(
        status=200 if is_well else 503,
        body=canonical_bytes(said),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
