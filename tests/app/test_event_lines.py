"""The lines of events: the same fields as any line of the log, in order, written together."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Iterator

import orjson
import pytest
import structlog

from processor.app.logs import EventLines


@pytest.fixture(params=[logging.INFO, logging.WARNING], ids=["info", "warning"])
def level(request: pytest.FixtureRequest) -> Iterator[int]:
    """The level of the log, as structlog is configured."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(request.param))
    yield request.param
    structlog.reset_defaults()


def test_lines_come_in_order_at_the_end_of_a_turn_of_the_loop(level: int) -> None:
    """Nothing is written at once, everything soon, and nothing at all above the level info."""
    output = io.BytesIO()

    async def main() -> None:
        lines = EventLines("here", output)
        for number in range(3):
            lines.write("turn", number=number)
        assert output.getvalue() == b""
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first = output.getvalue()
        lines.write("turn", number=3)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert output.getvalue().startswith(first)

    asyncio.run(main())
    told = [orjson.loads(line) for line in output.getvalue().splitlines()]
    assert [each["number"] for each in told] == ([0, 1, 2, 3] if level == logging.INFO else [])
    for each in told:
        assert each.keys() == {"number", "event", "level", "logger", "timestamp"}
        assert (each["event"], each["level"], each["logger"]) == ("turn", "info", "here")
        assert each["timestamp"].endswith("Z")
