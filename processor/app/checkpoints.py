"""Where a worker goes on from when it is given a partition, and folding from there on.

From its own store, if that is a store of this log; where that is far behind, from the set that
workers share, if there is one that fits; else from the beginning of the log. What fits in no way
is not mended but done without: everything here can be made again from the log.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, NamedTuple, final

import structlog

from processor.app.local_store import LocalStore
from processor.app.progress import FoldProgress
from processor.app.recovery import LogEnds, is_of_this_log, log_ends, log_range, log_reader
from processor.app.reduce_agent import PartitionStopped, ReduceAgent
from processor.app.shared_place import Record, SharedPlace, SharedPlaceError
from processor.app.shared_set import SharedSet
from replay.batch import Position
from replay.errors import StoreError

SHARED_EVENTS_MIN = 1_000
"""With fewer events to fold, reading what is shared takes longer than folding."""
READ_RECORDS = 64

_log = structlog.get_logger(__name__)


@final
class Start(NamedTuple):
    """Where folding begins, and whose word that is: local, shared or log."""

    offset: int
    source: str


@final
class Recovery:
    """Brings partitions to where the group has come, without emitting anything."""

    def __init__(
        self,
        connection: Mapping[str, Any],
        group: str,
        store: LocalStore,
        place: SharedPlace,
        reduce_agent: ReduceAgent,
        progress: FoldProgress,
    ) -> None:
        self._connection = connection
        self._group = group
        self._store = store
        self._place = place
        self._reduce = reduce_agent
        self._progress = progress

    async def run(
        self, partitions: list[int], on_stopped: Callable[[PartitionStopped], None]
    ) -> dict[int, int]:
        """Fold each partition up to the group's place; the end that each log had.

        A store that turns out to be damaged is set aside, and the log alone is believed.
        `on_stopped` is told of each partition that cannot be folded that far. Raises EpochEnded.
        """
        epoch = self._progress.epoch
        async with log_reader(self._connection, partitions) as reader:
            ends = await log_ends(reader, self._connection, self._group, partitions)
            try:
                await self._recover(reader, ends, epoch, on_stopped, with_shared=True)
            except StoreError:
                self._progress.check(epoch)
                if not self._store.is_damaged:  # a full disk is no damage
                    raise
                await self._store.set_aside()
                self._progress.go_back()
                await self._recover(reader, ends, epoch, on_stopped, with_shared=False)
        return {partition: each.end for partition, each in ends.items()}

    async def _recover(
        self,
        reader: Any,
        ends: dict[int, LogEnds],
        epoch: int,
        on_stopped: Callable[[PartitionStopped], None],
        *,
        with_shared: bool,
    ) -> None:
        positions = await self._own_positions(reader, ends)
        for partition, each in ends.items():
            began = time.monotonic()
            own = positions.get(partition)
            start = Start(each.first, "log") if own is None else Start(own.next_offset, "local")
            if with_shared and each.committed - start.offset > SHARED_EVENTS_MIN:
                start = await self._from_shared(reader, partition, each, start, epoch)
            self._progress.check(epoch)
            self._progress.advance(partition, start.offset)
            try:
                folded = await self._fold(reader, partition, start.offset, each.committed, epoch)
            except PartitionStopped as stopped:
                on_stopped(stopped)
                continue
            self._progress.advance(partition, each.committed)
            _log.info(
                "recovered",
                partition=partition,
                from_offset=start.offset,
                folded=folded,
                source=start.source,
                ms=round(1_000 * (time.monotonic() - began)),
            )

    async def _own_positions(self, reader: Any, ends: dict[int, LogEnds]) -> dict[int, Position]:
        """Where the store has each partition; a store of another log is thrown away."""
        positions = await self._store.positions(list(ends))
        for partition, position in positions.items():
            if not await is_of_this_log(reader, position, ends[partition]):
                _log.warning("store_of_another_log", partition=partition)
                await self._store.start_again()
                return {}
        return positions

    async def _fold(
        self, reader: Any, partition: int, start: int, committed: int, epoch: int
    ) -> int:
        """Fold a range of the log, but for what conversations are further; how many were folded."""
        ahead = await self._store.ahead(partition, start)
        folded = 0
        async with aclosing(log_range(reader, partition, start, committed)) as messages:
            async for message in messages:
                self._progress.check(epoch)
                if message.offset < ahead.get(message.key or b"", 0):
                    self._store.passed_over(message)
                    self._progress.advance(partition, message.offset + 1)
                    continue
                await self._reduce.fold(message)
                folded += 1
        self._progress.check(epoch)
        return folded

    async def _from_shared(
        self, reader: Any, partition: int, ends: LogEnds, own: Start, epoch: int
    ) -> Start:
        """Take in what is shared, if that is usable and further than what is here."""
        try:
            shared = await read_shared_set(self._place, partition)
            objection = await objection_to(shared, reader, ends)
        except SharedPlaceError as failure:
            objection = str(failure)
        if objection is not None:
            _log.info("checkpoint_not_used", partition=partition, reason=objection)
            return own
        self._progress.check(epoch)
        named, *_ = shared.positions()
        if named.next_offset <= own.offset:
            return own
        await self._store.take_in(named, shared.conversations())
        return Start(named.next_offset, "shared")


async def read_shared_set(place: SharedPlace, partition: int) -> SharedSet:
    """Read all that is shared of a partition. Raises SharedPlaceError."""
    shared = SharedSet(partition)
    records: list[Record] = []
    async with aclosing(place.read(partition)) as found:
        async for record in found:
            records.append(record)
            if len(records) == READ_RECORDS:
                await asyncio.to_thread(shared.add, records)
                records = []
    await asyncio.to_thread(shared.add, records)
    return shared


async def objection_to(shared: SharedSet, reader: Any, ends: LogEnds) -> str | None:
    """Why a set cannot be used with this log and at the group's place; None if it can.

    A set from beyond that place would leave out what was folded but not emitted yet.
    """
    objection = await asyncio.to_thread(shared.objection)
    if objection is not None:
        return objection
    for position in shared.positions():
        if position.next_offset > ends.committed:
            return "it is beyond the group's place"
        if not await is_of_this_log(reader, position, ends):
            return "it is of another log"
    return None
