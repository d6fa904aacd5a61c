"""Reading a topic as it grows, without a consumer group: nobody else's reading is disturbed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from aiokafka import TopicPartition

from processor.app.connection import connected
from processor.app.fetched import new_consumer
from processor.app.partitions import partition_of
from processor.app.settings import KafkaSettings
from processor.app.topic_reader import refuse_damage
from processor.app.topics import partition_count
from schemas.ids import conversation_key

_POLL_MS = 200


@final
class Message(NamedTuple):
    """One record of a topic. A record without value is a tombstone."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@final
@dataclass(frozen=True, slots=True)
class Selection:
    """Which messages are asked for."""

    from_beginning: bool = False
    tenant_id: str | None = None
    conversation_id: str | None = None

    @property
    def key(self) -> bytes | None:
        """The key, if there is but one."""
        if self.tenant_id is None or self.conversation_id is None:
            return None
        return conversation_key(self.tenant_id, self.conversation_id).encode()

    def takes(self, key: bytes | None) -> bool:
        """Whether a message with this key is asked for."""
        tenant, _, conversation = (key or b"").partition(b"/")
        return (self.tenant_id is None or tenant == self.tenant_id.encode()) and (
            self.conversation_id is None or conversation == self.conversation_id.encode()
        )


async def tail(
    settings: KafkaSettings, topic: str, selection: Selection, stopped: asyncio.Event
) -> AsyncGenerator[Message, None]:
    """The messages asked for, until it is stopped. Raises BrokerError."""
    partitions = await _partitions(settings, topic, selection.key)
    async with _consumer(settings) as consumer:
        consumer.assign(partitions)
        if selection.from_beginning:
            await consumer.seek_to_beginning(*partitions)
        else:
            await consumer.seek_to_end(*partitions)
        while not stopped.is_set():
            fetched = await consumer.getmany(timeout_ms=_POLL_MS)
            for record in (record for records in fetched.values() for record in records):
                refuse_damage(record)
                if selection.takes(record.key):
                    yield Message(
                        *(record.topic, record.partition, record.offset),
                        *(record.key, record.value, tuple(record.headers)),
                    )


async def _partitions(
    settings: KafkaSettings, topic: str, key: bytes | None
) -> list[TopicPartition]:
    """All partitions, or the one that owns the key. Raises BrokerError."""
    count = await partition_count(settings, topic)
    numbers = range(count) if key is None else [partition_of(key, count)]
    return [TopicPartition(topic, number) for number in numbers]


@asynccontextmanager
async def _consumer(settings: KafkaSettings) -> AsyncIterator[Any]:
    consumer = new_consumer(
        **settings.client_options(), enable_auto_commit=False, auto_offset_reset="earliest"
    )
    async with connected(settings, consumer):
        yield consumer
