"""Recovery: folds the part of the log that others have worked on already, without emitting.

A partition's log is folded from where the local store left it to where the group has committed;
from there on Faust delivers, and what comes of it is emitted. Reading a range is plain aiokafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple, final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from processor.app.messages import OPERATIONS, Delivered
from replay.batch import Position, record_hash

FETCH_BYTES_MAX = 16 * 1_048_576
POLL_MS = 500
RETRY_S = 0.5


@final
class LogEnds(NamedTuple):
    """Of one partition: its first offset, the one the group goes on from, and the next to come."""

    first: int
    committed: int
    end: int


@asynccontextmanager
async def log_reader(
    connection: Mapping[str, Any], partitions: list[int], topic: str = OPERATIONS
) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer without a group, for ranges of the log or of another topic.

    Its partitions are assigned once: one that is stopped right after another assignment may never
    end (aiokafka 0.14 loses the cancellation of its fetches).
    """
    places = [TopicPartition(topic, partition) for partition in partitions]
    consumer = AIOKafkaConsumer(
        enable_auto_commit=False,
        auto_offset_reset="none",
        max_partition_fetch_bytes=FETCH_BYTES_MAX,
        **connection,
    )
    await consumer.start()
    try:
        consumer.assign(places)
        consumer.pause(*places)
        yield consumer
    finally:
        await consumer.stop()


async def log_ends(
    reader: AIOKafkaConsumer, connection: Mapping[str, Any], group: str, partitions: list[int]
) -> dict[int, LogEnds]:
    """Where the log of each partition begins and ends, and up to where the group has come."""
    places = [TopicPartition(OPERATIONS, partition) for partition in partitions]
    committed = await committed_offsets(connection, group, partitions)
    first = await reader.beginning_offsets(places)
    end = await reader.end_offsets(places)
    ends: dict[int, LogEnds] = {}
    for place in places:
        reached = committed.get(place.partition, first[place])
        ends[place.partition] = LogEnds(first[place], reached, end[place])
    return ends


async def committed_offsets(
    connection: Mapping[str, Any], group: str, partitions: list[int]
) -> dict[int, int]:
    """Up to where the group has come in the log, of the partitions of which it has said so."""
    places = [TopicPartition(OPERATIONS, partition) for partition in partitions]
    admin = AIOKafkaAdminClient(**connection)
    await admin.start()
    try:
        found = await _committed(admin, group, places)
    finally:
        await admin.close()
    return {place.partition: known.offset for place, known in found.items() if known.offset >= 0}


async def _committed(
    admin: AIOKafkaAdminClient, group: str, places: list[TopicPartition]
) -> dict[TopicPartition, Any]:
    """What the group has committed; its coordinator may be moving, then it is asked again."""
    while True:
        try:
            found: dict[TopicPartition, Any] = await admin.list_consumer_group_offsets(
                group, partitions=places
            )
        except KafkaError as failure:
            if not failure.retriable:
                raise
            await asyncio.sleep(RETRY_S)
        else:
            return found


async def log_range(
    reader: AIOKafkaConsumer, partition: int, start: int, stop: int, topic: str = OPERATIONS
) -> AsyncGenerator[Delivered, None]:
    """The messages of a partition with start <= offset < stop, in order."""
    place = TopicPartition(topic, partition)
    if start >= stop:
        return
    reader.seek(place, start)
    reader.resume(place)
    try:
        while await reader.position(place) < stop:
            for records in (await reader.getmany(place, timeout_ms=POLL_MS)).values():
                for record in records:
                    if record.offset >= stop:
                        return
                    yield Delivered(topic, partition, record.offset, record.key, record.value)
    finally:
        reader.pause(place)


async def is_of_this_log(reader: AIOKafkaConsumer, position: Position, ends: LogEnds) -> bool:
    """Whether the log holds, before the position, the record that was there when it was noted."""
    offset = position.next_offset - 1
    if not ends.first <= offset < ends.end:
        return position.next_offset == ends.first == 0
    async with aclosing(log_range(reader, position.partition, offset, offset + 1)) as messages:
        async for message in messages:
            return record_hash(message.value or b"") == position.record_hash
    return False
