"""Connecting to the brokers with a deadline, and saying in one line why it failed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from processor.app.errors import BrokerError
from processor.app.settings import KafkaSettings

CONNECT_SECONDS_MAX = 5.0
REQUEST_MS_MAX = 10_000
"""How long one request of an admin client may take."""


class _LastComplaint(logging.Handler):
    """Keeps what the client says of a failed connection: its exceptions do not say why."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


async def connect(
    settings: KafkaSettings, start: Callable[[], Awaitable[object]], stop: Callable[[], Any]
) -> None:
    """Start a client within a few seconds. Raises BrokerError, with the client stopped."""
    complaint = _LastComplaint()
    log = logging.getLogger("aiokafka")
    log.addHandler(complaint)
    try:
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            await start()
    except (KafkaError, OSError, TimeoutError) as failed:
        await stop()
        reason = complaint.text.rstrip(": ") or str(failed) or "no answer"
        raise BrokerError(f"{settings.bootstrap}: {reason}") from failed
    finally:
        log.removeHandler(complaint)


@asynccontextmanager
async def connected(settings: KafkaSettings, client: Any) -> AsyncIterator[Any]:
    """A consumer or producer that is started, and stopped at the end. Raises BrokerError."""
    await connect(settings, client.start, client.stop)
    try:
        yield client
    except (KafkaError, TimeoutError) as failed:
        raise BrokerError(f"{settings.bootstrap}: {failed or 'no answer'}") from failed
    finally:
        await client.stop()


@asynccontextmanager
async def admin_client(settings: KafkaSettings) -> AsyncIterator[Any]:
    """An admin client of aiokafka. Raises BrokerError."""
    admin = AIOKafkaAdminClient(**settings.client_options(), request_timeout_ms=REQUEST_MS_MAX)
    await connect(settings, admin.start, admin.close)
    try:
        yield admin
    except (KafkaError, TimeoutError) as failed:
        is_passing = not isinstance(failed, KafkaError) or failed.retriable
        problem = f"{settings.bootstrap}: {failed or 'no answer'}"
        raise BrokerError(problem, is_passing=is_passing) from failed
    finally:
        await admin.close()
