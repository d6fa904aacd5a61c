"""Both guards behind one function, and gates in a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from processor.client import Alert, Answer, AsyncGuard, Claim, Guard
from tests.web.fake import FakeConversations, serving

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


@contextmanager
def gate(said: FakeConversations, **settings: Any) -> Iterator[str]:
    """A gate in a thread of its own, and its address."""
    loop = asyncio.new_event_loop()
    stop, started = asyncio.Event(), threading.Event()
    address: list[str] = []

    async def main() -> None:
        async with serving(said, **settings) as client:
            address.append(client.address)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    try:
        assert started.wait(60)
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()
