"""Erasing for whoever asks a worker: what `standfast erase` does, without the command.

Nothing is begun while the keys are away, so nobody takes an outage for an erasure. What was cut
short is completed when it is asked for again, here or by the command.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import final

from processor.app.erasure import Erased, broker_erasure
from processor.app.sender import Sender
from processor.app.settings import KafkaSettings
from processor.app.worker_keys import WorkerKeys


class KeptInTheClear(Exception):  # noqa: N818 - it says what is so
    """There is no key file, hence nothing that could be destroyed."""


@final
class WorkerErasure:
    """Erases one conversation after the other: each reads a partition of the log."""

    def __init__(self, kafka: KafkaSettings, sender: Sender, keys: WorkerKeys) -> None:
        self._kafka = kafka
        self._sender = sender
        self._keys = keys
        self._one_at_a_time = asyncio.Lock()

    async def erase(
        self, partition: int, tenant_id: str, conversation_id: str, at: datetime
    ) -> Erased:
        """Erase a conversation, or complete its erasure.

        Raises KeysAwayError and then nothing was done; BrokerError; and EpochEnded.
        """
        async with self._one_at_a_time:
            self._keys.require_service(tenant_id, conversation_id)
            erasure = await broker_erasure(self._kafka, self._sender)
            erased = await erasure.erase(tenant_id, conversation_id, at)
            await erasure.let_compact()
        await self._keys.is_known(partition, tenant_id, conversation_id)  # closed here at once
        return erased
