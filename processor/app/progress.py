"""Up to where each partition of the log is folded, and who waits for it."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count
from typing import final


class EpochEnded(Exception):  # noqa: N818 - it says what happened
    """The partitions were assigned anew meanwhile; what was begun before must have no effect."""


@final
class FoldProgress:
    """The next offset to fold of each partition that this worker has.

    `epoch` counts the assignments: what was begun in an earlier one must have no effect.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self._next: dict[int, int] = {}
        self._waiters: dict[int, list[tuple[int, int, asyncio.Future[None]]]] = {}
        self._ties = count()

    def next_offset(self, partition: int) -> int:
        """The offset up to which, without it, the partition is folded; 0 if nothing is."""
        return self._next.get(partition, 0)

    def advance(self, partition: int, next_offset: int) -> None:
        """The partition is folded up to here; wakes those who waited for it."""
        if next_offset <= self.next_offset(partition):
            return
        self._next[partition] = next_offset
        waiters = self._waiters.get(partition, [])
        while waiters and waiters[0][0] < next_offset:
            _, _, waiter = heapq.heappop(waiters)
            if not waiter.done():
                waiter.set_result(None)

    async def folded(self, partition: int, offset: int) -> None:
        """Return when the event at the offset, and all before it, are folded."""
        if offset < self.next_offset(partition):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiters.setdefault(partition, []), (offset, next(self._ties), waiter))
        await waiter

    def go_back(self) -> None:
        """What was folded in this epoch is lost and is folded again; nobody waits for it yet."""
        self._next.clear()

    def check(self, epoch: int) -> None:
        """Raise EpochEnded if the partitions were assigned anew since then."""
        if self.epoch != epoch:
            raise EpochEnded

    def stop(self, partition: int) -> None:
        """The partition is not folded any further in this epoch; who waits is cancelled."""
        for _, _, waiter in self._waiters.pop(partition, []):
            waiter.cancel()

    def new_epoch(self) -> None:
        """No partition is ours until it is assigned anew; who waits is told by cancellation."""
        self.epoch += 1
        self._next.clear()
        waiters, self._waiters = self._waiters, {}
        for of_partition in waiters.values():
            for _, _, waiter in of_partition:
                waiter.cancel()
