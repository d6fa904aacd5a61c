"""How much one tenant, one address, and all together, may ask of a worker."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, final

NAMES_MAX = 10_000
"""With an open gate a tenant is a name in a path, of which there is no end, as of addresses."""


@final
class Rates:
    """A token bucket for each name: `burst` at once, `per_second` in the long run."""

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> int | None:
        """Take one request; None if it may pass, else in how many seconds the next one may."""
        now = self._clock()
        left, at = self._buckets.pop(name, (float(self._burst), now))
        left = min(self._burst, left + (now - at) * self._per_second)
        wait_s = None if left >= 1 else max(1, math.ceil((1 - left) / self._per_second))
        self._buckets[name] = (left if wait_s else left - 1, now)
        if len(self._buckets) > NAMES_MAX:
            self._buckets.popitem(last=False)
        return wait_s


@final
class Slot:
    """A request that is being answered, with what it left to be done."""

    def __init__(self, slots: Slots, tenant_id: str) -> None:
        self._slots = slots
        self._tenant_id = tenant_id
        self._holders = 1

    def hold_for(self, work: asyncio.Future[Any]) -> None:
        """Hold it until the work is done, even if the request is answered before."""
        self._holders += 1
        work.add_done_callback(self.release)

    def release(self, *_: object) -> None:
        """The request is answered, or what it held the slot for is done."""
        self._holders -= 1
        if not self._holders:
            self._slots.leave(self._tenant_id)


@final
class Slots:
    """The requests that are being answered: at most so many, and so many of one tenant."""

    def __init__(self, most: int, per_tenant: int) -> None:
        self._most = most
        self._per_tenant = per_tenant
        self._taken: dict[str, int] = {}
        self.taken = 0

    def take(self, tenant_id: str) -> Slot | None:
        """A slot, if there is one left."""
        of_tenant = self._taken.get(tenant_id, 0)
        if self.taken >= self._most or of_tenant >= self._per_tenant:
            return None
        self._taken[tenant_id] = of_tenant + 1
        self.taken += 1
        return Slot(self, tenant_id)

    def leave(self, tenant_id: str) -> None:
        """Give a slot back."""
        self.taken -= 1
        left = self._taken.pop(tenant_id) - 1
        if left:
            self._taken[tenant_id] = left
