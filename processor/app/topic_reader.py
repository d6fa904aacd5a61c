"""Reading topics without a group: nobody else's reading is disturbed, and nothing is committed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import TopicPartition

from processor.app.connection import admin_client, connected
from processor.app.errors import BrokerError
from processor.app.fetched import Damage, new_consumer, problem_of, without_problems
from processor.app.settings import KafkaSettings
from replay.archive_batch import ArchivedMessage
from schemas.topics import topic_at

FETCH_BYTES_MAX = 8 * 1_048_576
PARTITION_FETCH_BYTES_MAX = 262_144
"""What is fetched ahead of one partition; a message that is larger comes alone."""
POLL_MS = 200


async def our_partitions(settings: KafkaSettings) -> list[TopicPartition]:
    """Every partition of every topic of the pipeline that exists, in order. Raises BrokerError."""
    async with admin_client(settings) as admin:
        described = await admin.describe_topics()
    return sorted(
        TopicPartition(topic["topic"], partition["partition"])
        for topic in described
        if topic_at(topic["topic"]) is not None
        for partition in topic["partitions"]
    )


@asynccontextmanager
async def paused_reader(
    settings: KafkaSettings, places: Collection[TopicPartition], reset: str = "none"
) -> AsyncIterator[Any]:
    """A consumer of these partitions, all of them paused. Raises BrokerError.

    They are assigned once: a consumer that is stopped right after another assignment may never end
    (aiokafka 0.14 loses the cancellation of its fetches).
    """
    consumer = new_consumer(
        **settings.client_options(),
        enable_auto_commit=False,
        auto_offset_reset=reset,
        fetch_max_bytes=FETCH_BYTES_MAX,
        max_partition_fetch_bytes=PARTITION_FETCH_BYTES_MAX,
    )
    async with connected(settings, consumer):
        consumer.assign(list(places))
        consumer.pause(*places)
        yield consumer


async def records_of(
    settings: KafkaSettings, places: Collection[TopicPartition]
) -> AsyncGenerator[Any, None]:
    """All records that partitions have by now, one partition after the other.

    Raises BrokerError, also for damage.
    """
    async with paused_reader(settings, places) as reader:
        firsts = await reader.beginning_offsets(places)
        ends = await reader.end_offsets(places)
        for place in places:
            reader.seek(place, firsts[place])
            reader.resume(place)
            while await reader.position(place) < ends[place]:
                for records in (await reader.getmany(place, timeout_ms=POLL_MS)).values():
                    for record in records:
                        refuse_damage(record)
                        yield record
            reader.pause(place)


def message_of(record: Any) -> ArchivedMessage:
    """A record of the client as we name its parts. Raises BrokerError for damage."""
    refuse_damage(record)
    return ArchivedMessage(
        *(record.topic, record.partition, record.offset),
        -1 if record.timestamp is None else record.timestamp,
        *(record.key, without_problems(record.headers), record.value),
    )


def refuse_damage(record: Any) -> None:
    """Raise BrokerError if this stands for bytes that are not what was written."""
    damage = problem_of(record.headers, Damage)
    if damage is not None:
        raise BrokerError(f"{record.topic}/{record.partition}: {damage}")
