"""Copies the topics into an archive, each message exactly once by topic, partition and offset.

Where copying goes on is said by the archive alone. The last message of each partition that the
archive has is read once more and compared: a topic that was deleted and created anew is another
log, and is refused. What the brokers have deleted before it was copied is noted as a gap.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, final

from aiokafka import TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from processor.app.archive_keys import MessageSealer
from processor.app.archive_thread import ArchiveThread
from processor.app.errors import BrokerError
from processor.app.fetched import BatchProblem, problem_of
from processor.app.messages import KEYS
from processor.app.settings import KafkaSettings
from processor.app.topic_reader import POLL_MS, message_of, our_partitions, paused_reader
from replay.archive_batch import (
    DELETED,
    EMPTY,
    ArchivedMessage,
    CopiedTo,
    Gap,
    MessageBatch,
    Place,
    message_hash,
)
from replay.batch import BATCH_EVENTS_MAX
from replay.errors import StoreError
from schemas.topics import Cleanup, topic_at

WRITE_SECONDS_MAX = 0.5
LOOK_SECONDS = 30.0
"""How often it looks for topics that are new, as those of a tenant that asks for its alerts."""


@final
class Start(NamedTuple):
    """From which offset to read a partition.

    With `expected`, the first message is the last that the archive has, and has that hash. With
    `gap_from`, what lies between that offset and the first is lost.
    """

    offset: int
    expected: str = ""
    gap_from: int | None = None


class AnotherLog(Exception):  # noqa: N818 - it says what is wrong
    """The partition does not hold what was copied from it; `str(error)` says how that shows."""


def start_of(copied: CopiedTo, first: int, end: int) -> Start:
    """Where to go on in a log with `first <= offset < end`. Raises AnotherLog."""
    if end < copied.next_offset:
        raise AnotherLog(f"it ends at {end}, and was copied up to {copied.next_offset}")
    if first > copied.next_offset:
        return Start(first, gap_from=copied.next_offset)
    if first < copied.next_offset and copied.message_hash:
        return Start(copied.next_offset - 1, copied.message_hash)
    return Start(copied.next_offset)


@final
class Copier:
    """Copies until `stopped`; `on_gap` is told what is lost, `on_copied` what was written.

    `copied` counts the messages that this copier wrote.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        archive: ArchiveThread,
        stopped: asyncio.Event,
        on_gap: Callable[[Gap], None] = lambda _: None,
        on_copied: Callable[[int], None] = lambda _: None,
        sealer: MessageSealer | None = None,
    ) -> None:
        self.copied = 0
        self.gaps: list[Gap] = []
        self._settings = settings
        self._archive = archive
        self._stopped = stopped
        self._on_gap = on_gap
        self._on_copied = on_copied
        self._sealer = sealer
        self._reached: dict[Place, CopiedTo] = {}
        self._next: dict[Place, int] = {}
        self._expected: dict[Place, str] = {}
        self._ends: dict[Place, int] = {}
        self._batch = MessageBatch()
        self._written_at = time.monotonic()

    def behind(self) -> dict[Place, int]:
        """By partition: how many offsets of what fetches have told of are not in the archive."""
        return {
            place: max(0, end - self._reached[place].next_offset)
            for place, end in self._ends.items()
            if place in self._reached
        }

    async def copy(self, *, until_end: bool) -> bool:
        """Copy all topics there are; whether it came to the ends that it found at the start.

        Without `until_end` it follows the topics. Raises BrokerError and StoreError.
        """
        while not self._stopped.is_set() and await self._archive.catch_up():
            pass
        self._reached = await self._archive.copied()
        self._ends.clear()
        while not self._stopped.is_set():
            places = await _copied_partitions(self._settings)
            if not places:
                raise BrokerError(
                    f"{self._settings.bootstrap}: there is no topic of the pipeline; "
                    "standfast topics create makes them"
                )
            async with paused_reader(self._settings, places) as reader:
                ends = await self._begin(reader, places)
                if await self._read(reader, places, ends if until_end else None):
                    return True
        return False

    async def _begin(
        self, reader: Any, places: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Go to where these partitions go on, and resume them; where they end now."""
        firsts: Mapping[TopicPartition, int] = await reader.beginning_offsets(places)
        ends: dict[TopicPartition, int] = await reader.end_offsets(places)
        for place in places:
            copied = self._reached.get(place)
            try:
                start = start_of(copied or CopiedTo(), firsts[place], ends[place])
            except AnotherLog as another:
                raise self._refusal(place, str(another)) from another
            if start.gap_from is not None:
                self._lost(Gap(place.topic, place.partition, start.gap_from, start.offset, DELETED))
            if copied is None or start.gap_from is not None:
                self._batch.reach(place, CopiedTo(start.offset))
            self._next[place] = start.offset
            self._expected.pop(place, None)
            if start.expected:
                self._expected[place] = start.expected
            self._ends[place] = ends[place]
            reader.seek(place, start.offset)
            reader.resume(place)
        return ends

    async def _read(
        self,
        reader: Any,
        places: Collection[TopicPartition],
        ends: Mapping[TopicPartition, int] | None,
    ) -> bool:
        """Copy until the ends, or until there are other partitions; whether it was the ends."""
        unfinished = set(places)
        look_at = time.monotonic() + LOOK_SECONDS
        while not self._stopped.is_set():
            await self._poll(reader)
            if ends is not None:
                unfinished = {
                    place for place in unfinished if await reader.position(place) < ends[place]
                }
                if not unfinished:
                    break
            elif time.monotonic() > look_at:
                look_at = time.monotonic() + LOOK_SECONDS
                if await self._are_others(places):
                    break
        await self._write()
        return ends is not None and not unfinished

    async def _poll(self, reader: Any) -> None:
        try:
            fetched = await reader.getmany(timeout_ms=POLL_MS, max_records=BATCH_EVENTS_MAX)
        except OffsetOutOfRangeError as out_of_range:
            await self._write()
            await self._begin(reader, list(out_of_range.args[0]))
            return
        for place, records in fetched.items():
            self._ends[place] = max(reader.highwater(place) or 0, records[-1].offset + 1)
            for record in records:
                unread = problem_of(record.headers, BatchProblem)
                if unread is not None:
                    where = f"{place.topic}/{place.partition}"
                    raise BrokerError(f"{self._settings.bootstrap}: {where}: {unread}")
                message = message_of(record)
                if self._sealer is not None:
                    message = await self._sealer.sealed(message)
                self._take(message)
                if self._batch.is_full():
                    await self._write()
        if time.monotonic() - self._written_at > WRITE_SECONDS_MAX:
            await self._write()

    def _take(self, message: ArchivedMessage) -> None:
        place = TopicPartition(message.topic, message.partition)
        following = self._next[place]
        expected = self._expected.pop(place, None)
        self._next[place] = message.offset + 1
        if expected is not None and message.offset == following:
            if message_hash(message) != expected and not self._was_erased(message):
                raise self._refusal(place, f"another message is at offset {message.offset}")
            return
        if expected is not None:
            following += 1  # the one that the archive has was compacted away
        if message.offset > following and not _is_compacted(message.topic):
            self._lost(Gap(message.topic, message.partition, following, message.offset, EMPTY))
        self._batch.add(message)

    def _was_erased(self, message: ArchivedMessage) -> bool:
        """Whether it was sealed with a key that is destroyed: nobody can make the same bytes."""
        return self._sealer is not None and self._sealer.is_closed(message)

    def _lost(self, gap: Gap) -> None:
        self._batch.add_gap(gap)
        self.gaps.append(gap)
        self._on_gap(gap)

    def _refusal(self, place: TopicPartition, problem: str) -> StoreError:
        return StoreError(
            f"{self._archive.path}: {place.topic}/{place.partition} was created anew or cut: "
            f"{problem}; copy it into another file"
        )

    async def _write(self) -> None:
        self._written_at = time.monotonic()
        if self._batch.is_empty():
            await self._archive.settle()
            return
        batch, self._batch = self._batch, MessageBatch()
        await self._archive.write(batch)
        self._reached |= batch.copied()
        self.copied += len(batch)
        self._on_copied(len(batch))

    async def _are_others(self, places: Collection[TopicPartition]) -> bool:
        try:
            return not set(places).issuperset(await _copied_partitions(self._settings))
        except BrokerError:
            return False  # reading waits for the brokers too; it looks again


async def _copied_partitions(settings: KafkaSettings) -> list[TopicPartition]:
    """Every partition but those of the wrapped data keys, which must not lie in a store."""
    return [place for place in await our_partitions(settings) if place.topic != KEYS]


def _is_compacted(name: str) -> bool:
    topic = topic_at(name)
    return topic is not None and topic.cleanup is Cleanup.COMPACT
