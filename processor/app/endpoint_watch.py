"""Tries a worker's endpoint when it starts, so that it is not ready before a model answers.

Later the calls themselves tell whether it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from processor.interpreter.port import EndpointUnavailable
from processor.interpreter.request import Model, UnfitEndpoint

_log = structlog.get_logger(__name__)

PAUSE_S = 5.0


@contextmanager
def watching(
    model: Model, tell: Callable[[bool], None], failed: asyncio.Future[None]
) -> Iterator[None]:
    """Try the model until it answers once; `failed` gets what cannot pass."""
    task = asyncio.create_task(_try(model, tell, failed))
    try:
        yield
    finally:
        task.cancel()


async def _try(model: Model, tell: Callable[[bool], None], failed: asyncio.Future[None]) -> None:
    while True:
        try:
            shape = await model.shape()
        except EndpointUnavailable as unavailable:
            tell(False)
            _log.warning("endpoint_waited_for", problem=str(unavailable))
            await asyncio.sleep(max(PAUSE_S, unavailable.retry_after_s or 0.0))
        except UnfitEndpoint as unfit:
            if not failed.done():
                failed.set_exception(unfit)
            return
        else:
            tell(True)
            _log.info("endpoint_answers", model=shape.model, dialect=shape.dialect.value)
            return
