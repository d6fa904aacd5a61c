"""What is asked about which conversation, and the wait for what must be folded before an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple, final

from processor.app.conversations import Conversations, Ours

NOWHERE = "~"
"""No id may be that: what belongs to another tenant is looked for here, and so is not found."""


@final
class Deadline:
    """Until when a request may wait; it may always look."""

    def __init__(self, wait_ms: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time() + wait_ms / 1_000

    async def first(self, futures: Sequence[asyncio.Future[Any]]) -> bool:
        """Whether one of these was done in time; none of them is cancelled."""
        left_s = max(0.0, self._at - self._loop.time())
        done, _ = await asyncio.wait(futures, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)


@final
class Asked(NamedTuple):
    """A conversation that this worker owns and is asked about."""

    conversations: Conversations
    owner: Ours
    tenant_id: str
    conversation_id: str
    is_hidden: bool
    """Whether whoever asks may not see it: then it is as if there were none."""
    copying: asyncio.Lock
    """Held while a copy is made for whoever asks: one tenant's views delay another's by one."""

    @property
    def looked_for(self) -> str:
        """Under which id it is looked for."""
        return NOWHERE if self.is_hidden else self.conversation_id

    async def is_folded(self, utterance_id: str | None, deadline: Deadline) -> bool:
        """Whether the utterance is folded before the deadline. Raises EpochEnded."""
        if utterance_id is None:
            return True
        conversation = await self.conversations.find(self.owner, self.tenant_id, self.looked_for)
        if conversation is not None and utterance_id in conversation.utterances:
            return True
        with self.conversations.watching(self.tenant_id, self.looked_for, utterance_id) as folded:
            if not await deadline.first([folded]):
                return False
            folded.result()
            return True
