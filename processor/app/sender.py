"""Sends messages, and says when the broker has them.

One producer for all that a worker writes: idempotent, acknowledged by all replicas in sync, batched
over a few milliseconds. A failure of the broker is waited for; only a message that the broker would
never take is given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from aiokafka.structs import RecordMetadata

from processor.app.messages import Outgoing
from schemas.topics import TOPICS

_log = structlog.get_logger(__name__)

LINGER_MS = 2
REQUEST_BYTES_MAX = 16 * 1_048_576
PAUSE_S = 1.0


Sending: TypeAlias = "asyncio.Future[RecordMetadata]"
"""A message on its way to the broker."""


class MessageTooLarge(Exception):  # noqa: N818 - it says what is wrong
    """The topic does not take a message of that size."""


_LIMITS = {topic.name: topic.message_bytes_max for topic in TOPICS}
_OVERHEAD_BYTES = 200


def _limit(topic: str) -> int:
    """What the topic takes. A broker that refuses a message breaks the sequence of the producer."""
    return min(_LIMITS.get(topic.partition(".")[0], REQUEST_BYTES_MAX), REQUEST_BYTES_MAX)


def _check_size(message: Outgoing) -> None:
    """Raise MessageTooLarge for what, with its batch, is more than the topic takes."""
    size = len(message.key) + len(message.value or b"") + _OVERHEAD_BYTES
    limit = _limit(message.topic)
    if 2 * size < limit:  # no headers of ours are that long
        return
    size += sum(len(name) + len(value) + 10 for name, value in message.headers)
    if size > limit:
        raise MessageTooLarge(f"{size:,} bytes for the topic {message.topic}")


@final
class Begun(NamedTuple):
    """Messages that were begun together, and those among them that are too large to be sent."""

    sendings: list[tuple[Outgoing, Sending]]
    too_large: list[Outgoing]


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

    async def begin_all(self, messages: Sequence[Outgoing]) -> Begun:
        """Take messages into the next batch together."""
        begun = Begun([], [])
        for message in messages:
            try:
                begun.sendings.append((message, await self.begin(message)))
            except MessageTooLarge:
                begun.too_large.append(message)
        return begun

    async def confirmed_all(self, begun: Begun) -> list[Outgoing]:
        """Those that their topics do not take, once the broker has the others."""
        too_large = begun.too_large
        for message, sending in begun.sendings:
            try:
                await self.confirmed(message, sending)
            except MessageTooLarge:
                too_large.append(message)
        return too_large

    async def begin(self, message: Outgoing) -> Sending:
        """Take a message into the next batch, in the order of calls. Raises MessageTooLarge."""
        _check_size(message)
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
