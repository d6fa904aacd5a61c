"""Both guards behind one function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from processor.client import Alert, Answer, AsyncGuard, Claim, Guard

KINDS = ["sync", "async"]
CLAIM = Claim("so", "h1")


def ask(
    kind: str, what: str, address: str, *arguments: Any, token: str = "any", **options: Any
) -> Answer:
    """Check or record with one of the guards; `settings` are those of the guard."""
    settings = {"fail": "closed", "seconds": 60.0, **options.pop("settings", {})}
    tenant = settings.pop("tenant", "acme")
    if kind == "sync":
        with Guard(address, tenant, token, **settings) as guard:
            return getattr(guard, what)(*arguments, **options)

    async def main() -> Answer:
        async with AsyncGuard(address, tenant, token, **settings) as guard:
            return await getattr(guard, what)(*arguments, **options)

    return asyncio.run(main())


def alerts(
    kind: str,
    address: str,
    *arguments: Any,
    token: str = "any",
    stop: Callable[[Alert], bool] = lambda _: False,
    **options: Any,
) -> list[Alert]:
    """The alerts that a guard gives, until the stream ends or one of them is enough."""
    found: list[Alert] = []
    if kind == "sync":
        with Guard(address, "acme", token, fail="closed", seconds=60.0) as guard:
            for alert in guard.alerts(*arguments, **options):
                found.append(alert)
                if stop(alert):
                    break
        return found

    async def main() -> None:
        async with AsyncGuard(address, "acme", token, fail="closed", seconds=60.0) as guard:
            async for alert in guard.alerts(*arguments, **options):
                found.append(alert)
                if stop(alert):
                    break

    asyncio.run(main())
    return found
