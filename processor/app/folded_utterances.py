"""Who waits for an utterance to be folded, and hears of it with all that came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias, final

from processor.app.progress import EpochEnded
from processor.app.reduce_agent import Folded
from schemas.ids import conversation_key

_Waiters: TypeAlias = dict[tuple[str, str], list[asyncio.Future[Folded]]]


@final
class FoldedUtterances:
    """Wakes those who watch for an utterance of a conversation; not told of those folded before."""

    def __init__(self) -> None:
        self._waiters: _Waiters = {}

    @contextmanager
    def watching(
        self, tenant_id: str, conversation_id: str, utterance_id: str
    ) -> Iterator[asyncio.Future[Folded]]:
        """Watch from now on; the future ends with EpochEnded if the partitions are assigned anew.

        Without an `await` between looking whether the conversation has the utterance and this call,
        nothing is missed.
        """
        name = (conversation_key(tenant_id, conversation_id), utterance_id)
        waiter: asyncio.Future[Folded] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(name, []).append(waiter)
        try:
            yield waiter
        finally:
            self._forget(name, waiter)

    def _forget(self, name: tuple[str, str], waiter: asyncio.Future[Folded]) -> None:
        if not waiter.cancel() and not waiter.cancelled():
            waiter.exception()  # it was told, and nobody asked any more
        others = self._waiters.get(name, [])
        if waiter in others:
            others.remove(waiter)
            if not others:
                del self._waiters[name]

    def tell(self, folded: Folded) -> None:
        """An event was folded just now."""
        event = folded.event
        key = conversation_key(event.tenant_id, event.conversation_id)
        for waiter in self._waiters.pop((key, event.utterance.id), []):
            if not waiter.done():
                waiter.set_result(folded)

    def new_epoch(self) -> None:
        """The partitions are assigned anew: what is watched for may be folded elsewhere."""
        waiters, self._waiters = self._waiters, {}
        for of_utterance in waiters.values():
            for waiter in of_utterance:
                if not waiter.done():
                    waiter.set_exception(EpochEnded())

    def __len__(self) -> int:
        """How many are waited for."""
        return sum(map(len, self._waiters.values()))
