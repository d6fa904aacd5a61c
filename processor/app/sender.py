"""Sends messages, and says when the broker has them.

One producer for all that a worker writes: idempotent, acknowledged by all replicas in sync, batched
over a few milliseconds. A failure of the broker is waited for; only a message that the broker would
never take is given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeAlias, final

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from aiokafka.structs import RecordMetadata

from processor.app.messages import Outgoing

_log = structlog.get_logger(__name__)

LINGER_MS = 5
REQUEST_BYTES_MAX = 16 * 1_048_576
PAUSE_S = 1.0


Sending: TypeAlias = "asyncio.Future[RecordMetadata]"
"""A message on its way to the broker."""


class MessageTooLarge(Exception):  # noqa: N818 - it says what is wrong
    """The topic does not take a message of that size."""


@final
class Sender:
    """A started producer; use it as `async with Sender(...)`."""

    def __init__(self, connection: Mapping[str, Any]) -> None:
        self._producer = AIOKafkaProducer(
            acks="all",
            enable_idempotence=True,
            linger_ms=LINGER_MS,
            max_request_size=REQUEST_BYTES_MAX,
            **connection,
        )

    async def __aenter__(self) -> Sender:
        await self._producer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.stop()

    async def partitions(self, topic: str) -> int:
        """How many partitions the topic has."""
        return len(await self._producer.partitions_for(topic))

    async def send(self, message: Outgoing) -> int:
        """Send a message; its offset, once the broker has it. Raises MessageTooLarge."""
        return await self.confirmed(message, await self.begin(message))

    async def begin(self, message: Outgoing) -> Sending:
        """Take a message into the next batch, in the order of calls. Raises MessageTooLarge."""
        while True:
            try:
                sending: Sending = await self._producer.send(
                    message.topic,
                    value=message.value,
                    key=message.key,
                    partition=message.partition,
                    headers=list(message.headers),
                )
            except MessageSizeTooLargeError as too_large:
                raise MessageTooLarge(str(too_large)) from too_large
            except KafkaError as failure:
                await self._wait_out(message, failure)
            else:
                return sending

    async def confirmed(self, message: Outgoing, sending: Sending) -> int:
        """The offset of a message that was begun, once the broker has it.

        Raises MessageTooLarge.
        """
        while True:
            try:
                offset: int = (await sending).offset
            except MessageSizeTooLargeError as too_large:
                raise MessageTooLarge(str(too_large)) from too_large
            except KafkaError as failure:
                await self._wait_out(message, failure)
                sending = await self.begin(message)
            else:
                return offset

    async def _wait_out(self, message: Outgoing, failure: KafkaError) -> None:
        """The broker is at fault: try again until it is not, however long that takes."""
        _log.warning(
            "send_failed",
            topic=message.topic,
            partition=message.partition,
            error=type(failure).__name__,
        )
        await asyncio.sleep(PAUSE_S)
