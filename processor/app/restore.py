"""Putting an archive back on brokers: after they were lost, or to have other partition counts.

The log goes back as it was, each conversation in its order, to the partitions of the keys. Derived
events come again from the log, with their ids. Then come the dead letters, and the utterances that
none of them is about: what the log has of those is found there by the workers, what it has not is
interpreted now.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, final

from aiokafka import TopicPartition

from processor.app.errors import BrokerError
from processor.app.letters import letter_of
from processor.app.messages import DEAD_LETTERS, KEYS, OPERATIONS, UTTERANCES, key_message
from processor.app.partitions import partition_of
from processor.app.produce import UNACKNOWLEDGED_MAX, idempotent_producer
from processor.app.sender import REQUEST_BYTES_MAX, Sender
from processor.app.settings import KafkaSettings
from processor.app.topic_reader import our_partitions, paused_reader
from replay.archive_batch import ArchivedMessage
from replay.archive_reader import ArchiveReader
from replay.errors import StoreError
from replay.sealing import keys_of
from schemas.ids import conversation_key
from schemas.keys import DestroyedKey, KeyRecord

RESTORED = (OPERATIONS, DEAD_LETTERS, UTTERANCES)
"""In this order: a worker that is too early finds the log before it finds what led to it."""


@final
class Restorer:
    """Restores until it is done or `stopped`; `sent` counts, by topic, what the brokers have."""

    def __init__(
        self,
        settings: KafkaSettings,
        archive: ArchiveReader,
        stopped: asyncio.Event,
        on_sent: Callable[[], None] = lambda: None,
    ) -> None:
        self.sent = dict.fromkeys(RESTORED, 0)
        self._settings = settings
        self._archive = archive
        self._stopped = stopped
        self._on_sent = on_sent
        self._letters: dict[tuple[int, int], bytes] = {}
        self._waiting: deque[tuple[str, asyncio.Future[object]]] = deque()

    async def restore(self) -> None:
        """Send everything. Raises BrokerError, and StoreError if the archive is not whole."""
        self._refuse_holes()
        partitions = await self._empty_topics()
        if self._archive.is_sealed:  # before anything that they open
            await self._send_keys(partitions)
        with ThreadPoolExecutor(1, thread_name_prefix="archive") as thread:
            async with idempotent_producer(self._settings, REQUEST_BYTES_MAX) as producer:
                for topic in RESTORED:
                    async for message in self._messages(thread, topic):
                        await self._send(producer, message, partitions)
                    await self._acknowledged(0)

    async def _send_keys(self, partitions: int) -> None:
        folder = keys_of(self._archive.path)
        records: list[KeyRecord] = list(folder.every())
        for tenant_id, conversation_id in folder.destroyed():
            records.append(DestroyedKey(tenant_id=tenant_id, conversation_id=conversation_id))
        async with Sender(self._settings.client_options()) as sender:
            for record in records:
                owner = conversation_key(record.tenant_id, record.conversation_id)
                partition = partition_of(owner.encode(), partitions)
                await sender.send(key_message(record, partition))

    def _refuse_holes(self) -> None:
        """A log that lacks an event cannot be folded beyond it."""
        if not self._archive.partitions(OPERATIONS):
            raise StoreError(f"{self._archive.path}: {OPERATIONS} was never copied")
        for partition, lacks in self._archive.lacking(OPERATIONS).items():
            raise StoreError(
                f"{self._archive.path}: {OPERATIONS}/{partition} lacks {lacks:,} messages; "
                "see its table gaps"
            )

    async def _empty_topics(self) -> int:
        """How many partitions the topics have. Raises BrokerError unless they are there, empty."""
        wanted = (*RESTORED, KEYS) if self._archive.is_sealed else RESTORED
        places = [place for place in await our_partitions(self._settings) if place.topic in wanted]
        counts = {topic: len([each for each in places if each.topic == topic]) for topic in wanted}
        if len(set(counts.values())) != 1 or not places:
            raise BrokerError(
                f"{self._settings.bootstrap}: {', '.join(wanted)} must all be there, with the "
                "same partition count; standfast topics create makes them"
            )
        async with paused_reader(self._settings, places) as reader:
            ends: dict[TopicPartition, int] = await reader.end_offsets(places)
        for place, end in ends.items():
            if end:
                raise BrokerError(
                    f"{self._settings.bootstrap}: {place.topic} is not empty; "
                    "an archive is restored to topics that were just created"
                )
        return counts[OPERATIONS]

    async def _messages(
        self, thread: ThreadPoolExecutor, topic: str
    ) -> AsyncGenerator[ArchivedMessage, None]:
        pages = self._archive.pages(topic)
        loop = asyncio.get_running_loop()
        while page := await loop.run_in_executor(thread, lambda: next(pages, None)):
            for message in page:
                if self._stopped.is_set():
                    return
                if self._goes_back(message):
                    yield message

    def _goes_back(self, message: ArchivedMessage) -> bool:
        """Whether anybody could make something of it."""
        if message.topic == DEAD_LETTERS:
            letter = letter_of(message)
            if letter.source_topic == UTTERANCES and not letter.is_truncated:
                place = (letter.source_partition or 0, letter.source_offset or 0)
                self._letters[place] = _fingerprint(letter.original)
        elif message.topic == UTTERANCES:
            letter_of_it = self._letters.get((message.partition, message.offset))
            return letter_of_it != _fingerprint(message.value or b"")
        return message.key is not None and message.value is not None

    async def _send(self, producer: Any, message: ArchivedMessage, partitions: int) -> None:
        future = await producer.send(
            message.topic,
            message.value,
            message.key,
            partition_of(message.key or b"", partitions),
            headers=list(message.headers),
        )
        self._waiting.append((message.topic, future))
        await self._acknowledged(UNACKNOWLEDGED_MAX)

    async def _acknowledged(self, waiting_max: int) -> None:
        while len(self._waiting) > waiting_max:
            topic, future = self._waiting.popleft()
            await future
            self.sent[topic] += 1
            self._on_sent()


def _fingerprint(original: bytes) -> bytes:
    return hashlib.sha256(original).digest()
