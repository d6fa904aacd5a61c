"""Publishes checkpoints for other workers, of what the store has on the disk.

Nothing is published that the group has not committed, so whoever begins with it leaves out nothing
that is still to be emitted. On each partition a publisher goes on from the newest usable set, or
makes a whole one; when others have published meanwhile, it looks again.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import structlog
from aiokafka.errors import KafkaError

from processor.app.checkpoints import objection_to, read_shared_set
from processor.app.local_store import LocalStore
from processor.app.recovery import committed_offsets, log_ends, log_reader
from processor.app.shared_place import (
    Keyed,
    RecordTooLargeError,
    SharedPlace,
    SharedPlaceError,
)
from processor.engine.snapshot import SNAPSHOT_FORMAT
from replay.batch import Position
from replay.errors import KeysNotThereError
from schemas.checkpoint import MARKER_KEY, Forgotten, Marker, SharedConversation, record_bytes
from schemas.ids import conversation_key

_log = structlog.get_logger(__name__)


@dataclass
class _Reign:
    """The time in which one publisher alone publishes on a partition.

    `since` is the end of the partition when it began, `end` after it published last; `base` is the
    offset up to which the set is complete, `stale` what a whole set must declare forgotten.
    """

    since: int
    end: int
    base: int = 0
    is_whole: bool = False
    stale: list[bytes] = field(default_factory=list)
    publisher: str = field(default_factory=lambda: uuid.uuid4().hex)


@final
class Publisher:
    """Publishes the partitions that it was told about last."""

    def __init__(
        self, connection: Mapping[str, Any], group: str, store: LocalStore, place: SharedPlace
    ) -> None:
        self._connection = connection
        self._group = group
        self._store = store
        self._place = place
        self._reigns: dict[int, _Reign] = {}
        self._too_large: set[int] = set()
        self._partitions: list[int] = []
        self._round: asyncio.Task[None] | None = None

    def begin(self, partitions: list[int]) -> None:
        """These partitions are ours, and folded up to the group's place."""
        self._partitions = partitions

    async def stop(self) -> None:
        """Nothing is ours any more; what is under way ends."""
        self._partitions = []
        self._too_large.clear()
        if self._round is not None and not self._round.done():
            self._round.cancel()
            await asyncio.wait([self._round])

    async def run(self, seconds: float) -> None:
        """Publish again and again. Raises StoreError."""
        while True:
            await asyncio.sleep(seconds)
            await self.publish()

    async def publish(self) -> None:
        """Publish what has changed, or say why that cannot be done. Raises StoreError."""
        if self._round is None or self._round.done():
            self._round = asyncio.create_task(self._publish())
        await asyncio.wait([self._round])
        if not self._round.cancelled():
            self._round.result()

    async def _publish(self) -> None:
        partitions = [each for each in self._partitions if each not in self._too_large]
        if not partitions:
            return
        try:
            ends = await self._place.ends(partitions)
            committed = await committed_offsets(self._connection, self._group, partitions)
            for partition in partitions:
                if partition in committed:
                    await self._publish_one(partition, ends[partition], committed[partition])
        except (KafkaError, SharedPlaceError, KeysNotThereError) as failure:
            _log.warning("checkpoint_not_published", reason=str(failure))

    async def _publish_one(self, partition: int, end: int, committed: int) -> None:
        upto = await self._store.shareable(partition, committed)
        reign = self._reigns.get(partition)
        if upto is None or (reign and reign.end == end and upto.next_offset <= reign.base):
            return
        if reign is None or reign.end != end:
            reign = self._reigns[partition] = await self._begin_reign(partition, end)
        if await self._place.is_worn(partition):
            reign.base, reign.is_whole = 0, True
        if upto.next_offset <= reign.base:
            return
        try:
            await self._publish_set(reign, upto)
        except RecordTooLargeError as too_large:
            self._too_large.add(partition)
            del self._reigns[partition]
            _log.warning("snapshot_too_large", partition=partition, problem=str(too_large))

    async def _begin_reign(self, partition: int, end: int) -> _Reign:
        """Go on from the set that is there, if it is one, else with a whole one."""
        shared = await read_shared_set(self._place, partition)
        async with log_reader(self._connection, [partition]) as reader:
            ends = await log_ends(reader, self._connection, self._group, [partition])
            objection = await objection_to(shared, reader, ends[partition])
        if objection is None and shared.marker is not None:
            return _Reign(end, end, shared.marker.next_offset)
        _log.info("checkpoint_begun", partition=partition, because=objection)
        return _Reign(end, end, 0, True, shared.keys())

    async def _publish_set(self, reign: _Reign, upto: Position) -> None:
        count = await self._store.conversation_count(upto)
        marker = Marker(**_head(reign, upto), since=reign.since, conversations=count)
        end = await self._place.publish(
            upto.partition,
            self._records(reign, upto),
            (MARKER_KEY, record_bytes(marker)),
            is_whole=reign.is_whole,
        )
        if end is None:  # somebody else published too; look at what is there now
            del self._reigns[upto.partition]
            return
        _log.info("checkpoint_published", partition=upto.partition, next_offset=upto.next_offset)
        reign.end, reign.base, reign.is_whole, reign.stale = end, upto.next_offset, False, []

    async def _records(self, reign: _Reign, upto: Position) -> AsyncIterator[Keyed]:
        forgotten = record_bytes(Forgotten(**_head(reign, upto)))
        for key in reign.stale:
            yield key, forgotten
        last = ("", "")
        while page := await self._store.packed(upto, reign.base, last):
            for packed in page:
                last = packed[:2]
                head = SharedConversation(
                    **_head(reign, upto),
                    tenant_id=packed.tenant_id,
                    conversation_id=packed.conversation_id,
                    sequence=packed.sequence,
                    state_digest=packed.state_digest,
                )
                yield conversation_key(*last).encode(), record_bytes(head, packed.payload)


def _head(reign: _Reign, upto: Position) -> dict[str, Any]:
    return {
        "publisher": reign.publisher,
        "state_format": SNAPSHOT_FORMAT,
        "next_offset": upto.next_offset,
        "record_hash": upto.record_hash,
    }
