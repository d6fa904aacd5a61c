"""What a worker says about itself, and to whom."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from aiohttp import web

from processor.app.gate_settings import GateSettings
from processor.app.metrics import Metrics
from processor.app.web.health import LAG_SECONDS_MAX, Health
from processor.app.web.server import WebServer
from schemas.http import Readiness
from tests.web.fake import FakeConversations, run, serving


def get(said: FakeConversations, path: str) -> tuple[int, Any]:
    """One answer, without a token."""

    async def main() -> tuple[int, Any]:
        async with serving(said) as client:
            return await client.get(path)

    return run(main())


def test_a_worker_lives_while_its_consumer_runs() -> None:
    """A dead consumer is a reason to restart it; nothing else is asked."""
    said = FakeConversations(owner=None)
    status, told = get(said, "/livez")
    assert (status, told["alive"]) == (200, True)
    said.runs = False
    status, told = get(said, "/livez")
    assert (status, told["alive"], told["consumer_runs"]) == (503, False, False)


def test_a_loop_that_was_held_up_is_not_alive() -> None:
    """The lag is measured beside everything else, and told."""

    async def main() -> None:
        health = Health(FakeConversations(), loop_lag_s=LAG_SECONDS_MAX + 1)
        answer = await health.livez(None)  # type: ignore[arg-type] # it looks at no request
        assert answer.status == 503

    run(main())


def test_the_lag_is_measured() -> None:
    """Something that holds up the loop shows."""

    async def main() -> None:
        async with serving(FakeConversations()) as client:
            await client.get("/livez")
            time.sleep(1.2)
            _, told = await client.get("/livez")
            assert told["loop_lag_ms"] > 100

    run(main())


def test_every_measured_lag_is_told_to_the_metrics() -> None:
    """What held up the loop is in the histogram of the lag."""

    async def main() -> bytes:
        metrics = Metrics()
        given = GateSettings(listen_port=0)
        async with WebServer(given, FakeConversations(), on_lag=metrics.loop_lag):
            await asyncio.sleep(0)  # it begins to measure
            time.sleep(1.2)
            while b"standfast_loop_lag_seconds_count 0.0" in metrics.text():
                await asyncio.sleep(0.05)
        return metrics.text()

    assert b'standfast_loop_lag_seconds_bucket{le="0.5"} 0.0' in run(main())


@pytest.mark.parametrize("amiss", ["assigned", "recovered", "store_open", "endpoint", "keys"])
def test_a_worker_that_is_not_ready_says_what_is_amiss(amiss: str) -> None:
    """503, and the part that is not as it should be."""
    parts = ("assigned", "recovered", "store_open", "endpoint", "keys")
    well = dict.fromkeys(parts, True)
    said = FakeConversations()
    assert get(said, "/readyz") == (200, {"ready": True, **well})
    said.well = Readiness(ready=False, **{**well, amiss: False})
    assert get(said, "/readyz") == (503, {"ready": False, **well, amiss: False})


def test_other_routes_can_be_served_beside() -> None:
    """Without a token, and without a gate."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text="1")

    async def main() -> None:
        async with serving(
            FakeConversations(), web.get("/metrics", metrics), open_gate=False
        ) as client:
            assert await client.get("/metrics") == (200, 1)

    run(main())


def test_without_a_port_there_is_no_server() -> None:
    """A worker listens only if it is told where."""

    async def main() -> None:
        async with serving(FakeConversations(), listen_port=None) as client:
            assert client.address.endswith(":0")

    run(main())
