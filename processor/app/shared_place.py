"""Where workers share checkpoints: by default the compacted topic `snapshots`.

A place is a log per partition, of records by key of which the newest counts. A set is a marker and
the newest record of every conversation; `shared_set.py` says when one can be used.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple, Protocol, TypeAlias, final

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from processor.app.fetched import BatchProblem, problem_of
from processor.app.messages import SNAPSHOTS, Outgoing
from processor.app.recovery import log_range, log_reader
from processor.app.sender import MessageTooLarge, Sender, Sending

UNDER_WAY_MAX = 16
"""Records that are sent before the first of them is confirmed."""

Keyed: TypeAlias = tuple[bytes, bytes]
"""The key and the value of a record."""


@final
class Record(NamedTuple):
    """A record and where it stands; without a value it deletes those of its key before it."""

    place: int
    key: bytes
    value: bytes | None


class SharedPlaceError(Exception):
    """The place cannot be read or written now; `str(error)` says why."""


@final
class RecordTooLargeError(SharedPlaceError):
    """The place takes no record of that size, so the set cannot be completed."""


class SharedPlace(Protocol):
    """Records by partition, in the order in which they were published."""

    async def ends(self, partitions: Sequence[int]) -> dict[int, int]:
        """The place of the next record of each; it grows when anybody publishes.

        Raises SharedPlaceError, as all of these do.
        """

    def read(self, partition: int) -> AsyncGenerator[Record, None]:
        """All records of the partition."""

    async def is_worn(self, partition: int) -> bool:
        """Whether the next set had better be a whole one."""

    async def publish(
        self, partition: int, records: AsyncIterator[Keyed], marker: Keyed, *, is_whole: bool
    ) -> int | None:
        """Publish records, and then the marker; the end of the partition after that.

        A whole set needs nothing of what was there before. None if others published meanwhile.
        """


@final
class SnapshotsTopic:
    """The topic `snapshots`, of which Kafka itself drops what is not the newest of its key."""

    def __init__(self, connection: Mapping[str, Any], sender: Sender) -> None:
        self._connection = connection
        self._sender = sender

    async def ends(self, partitions: Sequence[int]) -> dict[int, int]:
        """The next offset of each partition."""
        places = [TopicPartition(SNAPSHOTS, partition) for partition in partitions]
        try:
            async with log_reader(self._connection, list(partitions), SNAPSHOTS) as reader:
                ends = await reader.end_offsets(places)
        except KafkaError as failure:
            raise SharedPlaceError(f"{SNAPSHOTS}: {failure}") from failure
        return {place.partition: end for place, end in ends.items()}

    async def read(self, partition: int) -> AsyncGenerator[Record, None]:
        """All records of the partition."""
        place = TopicPartition(SNAPSHOTS, partition)
        try:
            async with log_reader(self._connection, [partition], SNAPSHOTS) as reader:
                first = (await reader.beginning_offsets([place]))[place]
                end = (await reader.end_offsets([place]))[place]
                async with aclosing(log_range(reader, partition, first, end, SNAPSHOTS)) as found:
                    async for message in found:
                        unread = problem_of(message.headers, BatchProblem)
                        if unread is not None:
                            raise SharedPlaceError(f"{SNAPSHOTS}/{partition}: {unread}")
                        yield Record(message.offset, message.key or b"", message.value)
        except KafkaError as failure:
            raise SharedPlaceError(f"{SNAPSHOTS}: {failure}") from failure

    async def is_worn(self, partition: int) -> bool:
        """Never: compaction does that."""
        del partition
        return False

    async def publish(
        self, partition: int, records: AsyncIterator[Keyed], marker: Keyed, *, is_whole: bool
    ) -> int | None:
        """Send records, and then the marker."""
        del is_whole  # the records say what is to be forgotten
        before = (await self.ends([partition]))[partition]
        under_way: deque[tuple[Outgoing, Sending]] = deque()
        sent = 0
        try:
            async for record in records:
                message = _outgoing(partition, record)
                under_way.append((message, await self._sender.begin(message)))
                sent += 1
                if len(under_way) >= UNDER_WAY_MAX:
                    await self._sender.confirmed(*under_way.popleft())
            while under_way:
                await self._sender.confirmed(*under_way.popleft())
            placed = await self._sender.send(_outgoing(partition, marker))
        except MessageTooLarge as too_large:
            await asyncio.gather(*(sending for _, sending in under_way), return_exceptions=True)
            raise RecordTooLargeError(f"{SNAPSHOTS}: {too_large}") from too_large
        return placed + 1 if placed == before + sent else None


def _outgoing(partition: int, record: Keyed) -> Outgoing:
    key, value = record
    return Outgoing(SNAPSHOTS, partition, key, value, ())
