"""The log and the dead letters on Kafka, as the interpret agent sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import structlog

from processor.app.interpret import Unusable
from processor.app.interpret_agent import EventTooLarge
from processor.app.local_store import LocalStore
from processor.app.messages import Delivered, dead_letter_message, log_message
from processor.app.metrics import Metrics
from processor.app.partitions import partition_of
from processor.app.progress import FoldProgress
from processor.app.sender import MessageTooLarge, Sender
from processor.app.tracing import Tracing
from processor.app.worker_keys import WorkerKeys
from processor.engine.conversation import Conversation
from processor.vault.errors import KeyDestroyedError
from schemas.ids import conversation_key
from schemas.log import LogEvent

_log = structlog.get_logger(__name__)


@final
@dataclass
class KafkaLog:
    """Implements `Log` and `DeadLetters`; `partitions` is how many each topic has.

    What is appended is sealed if there are `keys`.
    """

    sender: Sender
    store: LocalStore
    progress: FoldProgress
    metrics: Metrics
    tracing: Tracing
    keys: WorkerKeys | None = None
    partitions: int = 0
    _appended: dict[bytes, LogEvent] = field(default_factory=dict)

    def partition_of(self, key: bytes) -> int:
        """Where messages with the key belong."""
        return partition_of(key, self.partitions)

    async def conversation(
        self, partition: int, tenant_id: str, conversation_id: str
    ) -> Conversation:
        """The conversation as far as its log is folded. Raises KeyDestroyedError."""
        if self.keys is not None and not await self.keys.ready(
            partition, tenant_id, conversation_id
        ):
            raise KeyDestroyedError(f"{conversation_key(tenant_id, conversation_id)} was erased")
        return await self.store.conversation(tenant_id, conversation_id)

    async def append(self, partition: int, event: LogEvent) -> int:
        """Append to the log. Raises EventTooLarge, and KeyDestroyedError."""
        vault = None
        if self.keys is not None:  # the model took its time
            await self.keys.ready(partition, event.tenant_id, event.conversation_id)
            vault = self.keys.vault
        message = log_message(event, partition, self.tracing.carried(), vault)
        assert message.value is not None
        self._appended[message.value] = event
        try:
            return await self.sender.send(message)
        except MessageTooLarge as too_large:
            self._appended.pop(message.value, None)
            raise EventTooLarge(str(too_large)) from too_large

    def appended(self, value: bytes) -> LogEvent | None:
        """The event that was appended with these bytes in this epoch; it is told once."""
        return self._appended.pop(value, None)

    def new_epoch(self) -> None:
        """What was appended may be delivered to another worker."""
        self._appended.clear()

    async def folded(self, partition: int, offset: int) -> None:
        """Return when the log is folded beyond the offset."""
        await self.progress.folded(partition, offset)

    async def write(self, message: Delivered, letter: Unusable, attempts: int) -> None:
        """Write a dead letter, and return when the broker has it."""
        await self.sender.send(dead_letter_message(message, letter, attempts))
        self.metrics.dead_letter(letter.dead_letter_class)
        _log.warning(
            "dead_letter",
            partition=message.partition,
            offset=message.offset,
            reason_class=letter.dead_letter_class.value,
        )
