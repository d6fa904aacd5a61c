"""Recovery: folds the part of the log that others have worked on already, without emitting.

A partition's log is folded from where the local store left it to where the group has committed;
from there on Faust delivers, and what comes of it is emitted. Reading a range is plain aiokafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple, TypeVar, final

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from processor.app.fetched import BatchProblem, new_consumer, problem_of
from processor.app.messages import OPERATIONS, Delivered
from replay.batch import Position, record_hash

FETCH_BYTES_MAX = 16 * 1_048_576
POLL_MS = 500
RETRY_S = 0.5

Answer = TypeVar("Answer")

_log = structlog.get_logger(__name__)


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

    async def started() -> AIOKafkaConsumer:
        consumer = new_consumer(
            enable_auto_commit=False,
            auto_offset_reset="none",
            max_partition_fetch_bytes=FETCH_BYTES_MAX,
            **connection,
        )
        try:
            await consumer.start()
        except KafkaError:
            await consumer.stop()
            raise
        return consumer

    consumer = await waiting_out(started)
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
    found = await committed_places(connection, group, places)
    return {place.partition: offset for place, offset in found.items()}


async def committed_places(
    connection: Mapping[str, Any], group: str, places: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """Up to where the group has come, of the partitions of which it has said so."""

    async def ask() -> dict[TopicPartition, Any]:
        admin = AIOKafkaAdminClient(**connection)
        try:
            await admin.start()
            found: dict[TopicPartition, Any] = await admin.list_consumer_group_offsets(
                group, partitions=list(places)
            )
        finally:
            await admin.close()
        return found

    found = await waiting_out(ask)
    return {place: known.offset for place, known in found.items() if known.offset >= 0}


async def waiting_out(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask until there is an answer: a broker that restarts, or hands on its work, comes back."""
    while True:
        try:
            return await ask()
        except KafkaError as failure:
            if not failure.retriable:
                raise
            _log.warning("broker_waited_for", error=type(failure).__name__)
            await asyncio.sleep(RETRY_S)


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
                    if record.offset >= stop and not problem_of(record.headers, BatchProblem):
                        return  # a batch that cannot be read may begin before
                    place_of = (topic, partition, record.offset)
                    yield Delivered(*place_of, record.key, record.value, record.headers)
    finally:
        reader.pause(place)


async def is_of_this_log(reader: AIOKafkaConsumer, position: Position, ends: LogEnds) -> bool:
    """Whether the log holds, before the position, the record that was there when it was noted.

    Where that cannot be read any more, the store may be all that still has it: it is believed.
    """
    offset = position.next_offset - 1
    if not ends.first <= offset < ends.end:
        return position.next_offset == ends.first == 0
    async with aclosing(log_range(reader, position.partition, offset, offset + 1)) as messages:
        async for message in messages:
            is_unread = problem_of(message.headers, BatchProblem) is not None
            return is_unread or record_hash(message.value or b"") == position.record_hash
    return False
