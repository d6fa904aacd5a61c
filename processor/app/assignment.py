"""The partitions that a worker has, and how far each of them is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import final


@final
class Assignment:
    """Of one epoch; what is stopped is not ready, and stays so until the next epoch."""

    def __init__(self) -> None:
        self._ready: dict[int, asyncio.Event] = {}
        self._stopped: set[int] = set()
        self._is_known = False

    def forget(self) -> None:
        """They are assigned anew."""
        self._ready = {}
        self._stopped.clear()
        self._is_known = False

    def begin(self, partitions: Sequence[int]) -> None:
        """These are ours; none of them is ready."""
        self._ready = {partition: asyncio.Event() for partition in partitions}
        self._is_known = True

    def stop(self, partition: int) -> None:
        """Its log cannot be read on."""
        self._stopped.add(partition)
        self._ready[partition] = asyncio.Event()

    def is_stopped(self, partition: int) -> bool:
        """Whether its log cannot be read on."""
        return partition in self._stopped

    def stopped(self) -> int:
        """How many of them cannot be read on."""
        return len(self._stopped)

    def ready(self, partition: int) -> asyncio.Event | None:
        """Set when its log is folded to its end; None if it is not ours."""
        return self._ready.get(partition)

    def status(self) -> Mapping[int, bool] | None:
        """Whether each partition is ready; None before the first assignment and in a rebalance."""
        if not self._is_known:
            return None
        return {partition: ready.is_set() for partition, ready in self._ready.items()}
