"""What keeps calls within bounds: pauses between tries, a breaker per endpoint, tenants' budgets.

Time and chance are given, so that tests need neither.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import final

from processor.interpreter.port import EndpointUnavailable

Clock = Callable[[], float]


@final
@dataclass(frozen=True)
class Pauses:
    """How often one call is tried, and how long it waits between: growing, with full jitter."""

    tries_max: int = 3
    first_s: float = 0.5
    max_s: float = 8.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    uniform: Callable[[float, float], float] = random.uniform

    async def pause(self, tried: int, retry_after_s: float | None) -> None:
        """Wait after a number of tries, at least as long as the endpoint asked for."""
        longest = min(self.first_s * 2 ** (tried - 1), self.max_s)
        await self.sleep((retry_after_s or 0.0) + self.uniform(0.0, longest))


@final
@dataclass
class Breaker:
    """Opens after failures in a row; then one call tries whether the endpoint is back."""

    failures_max: int = 5
    open_s: float = 15.0
    clock: Clock = time.monotonic
    _failures: int = 0
    _tries_at: float = 0.0
    """When the next call may try, while it is open."""

    def check(self) -> None:
        """Raise EndpointUnavailable while the breaker is open."""
        if self._failures < self.failures_max:
            return
        left = self._tries_at - self.clock()
        if left > 0:
            raise EndpointUnavailable("the endpoint failed again and again: not asked", left)
        self._tries_at = self.clock() + self.open_s  # this call tries; the others wait on

    def failed(self) -> None:
        """A call failed by the endpoint's fault."""
        self._failures += 1
        if self._failures >= self.failures_max:
            self._tries_at = self.clock() + self.open_s

    def answered(self) -> None:
        """A call was answered."""
        self._failures = 0


@final
@dataclass
class _Spent:
    """What a tenant has spent in a period."""

    period: int
    tokens: int = 0
    calls: int = 0


@final
@dataclass
class TenantBudgets:
    """How many tokens and calls each tenant may spend in a period of the clock; None is no bound.

    Counted in this process alone. What is in flight when the bound is reached is not stopped.
    """

    tokens_max: int | None = None
    calls_max: int | None = None
    period_s: int = 3_600
    clock: Clock = time.time
    _spent: dict[str, _Spent] = field(default_factory=dict)

    def admit(self, tenant_id: str) -> str | None:
        """Count a call of the tenant, or say why it may not make one."""
        spent = self._of(tenant_id)
        for name, used, limit in (
            ("calls", spent.calls, self.calls_max),
            ("tokens", spent.tokens, self.tokens_max),
        ):
            if limit is not None and used >= limit:
                return f"the tenant's budget of {limit:,} {name} in {self.period_s:,} s is spent"
        spent.calls += 1
        return None

    def give_back(self, tenant_id: str) -> None:
        """A call that was counted went unanswered: an outage is not paid for."""
        spent = self._of(tenant_id)
        spent.calls = max(0, spent.calls - 1)  # the period may have ended meanwhile

    def spend(self, tenant_id: str, tokens: int) -> None:
        """A call of the tenant cost that many tokens."""
        self._of(tenant_id).tokens += tokens

    def _of(self, tenant_id: str) -> _Spent:
        period = int(self.clock() // self.period_s)
        spent = self._spent.get(tenant_id)
        if spent is None or spent.period != period:
            if len(self._spent) > 1_000:  # those of earlier periods count no more
                self._spent = {t: s for t, s in self._spent.items() if s.period == period}
            spent = self._spent[tenant_id] = _Spent(period)
        return spent
