"""Folds the log that an archive has copied, so that the archive answers what a store answers.

Folding comes after copying, in a transaction of its own with a place of its own, the table
`positions`: nothing that stands in the log can keep a message from being copied. What this version
does not understand stops the folding of its partition until a later version opens the archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import final

from processor.app.live import LiveConversations
from processor.app.messages import OPERATIONS, Delivered
from processor.app.reduce_agent import (
    PartitionStopped,
    newer_at,
    read_log_event,
    sealed_without_its_key,
    sealed_without_keys,
)
from processor.evidence.fold import RefusalReason, Refused
from processor.render.reduce import reduce
from processor.vault.errors import DataKeyNotThereError, KeyDestroyedError, SealedBytesError
from processor.vault.sealed import Kind, is_sealed
from replay.archive import Archive
from replay.archive_batch import ArchivedMessage, conversation_of
from replay.batch import Batch, Position, record_hash
from replay.segment_archive import SegmentArchive
from schemas.log import ConversationErased
from schemas.wire import canonical_bytes

RECORDS_MAX = 100_000


@final
class ArchiveFold:
    """Brings the store of an archive up to what was copied of the log.

    `on_stopped` is told once for each partition that stops. Every method raises StoreError.
    """

    def __init__(
        self, archive: Archive | SegmentArchive, on_stopped: Callable[[str], None]
    ) -> None:
        self._archive = archive
        self._store = archive.store
        self._on_stopped = on_stopped
        self._live = LiveConversations(archive.store, RECORDS_MAX)
        self._stopped: set[int] = set()
        copied = archive.copied()
        self._ends = {
            partition: to.next_offset
            for (topic, partition), to in copied.items()
            if topic == OPERATIONS
        }
        positions = archive.store.positions(list(self._ends))
        self._next = {
            partition: positions[partition].next_offset if partition in positions else 0
            for partition in self._ends
        }

    def catch_up(self) -> bool:
        """Fold some of what was copied before and never folded; whether there is more."""
        for partition, end in self._ends.items():
            offset = self._next[partition]
            if offset < end and partition not in self._stopped:
                page, after = self._archive.page((OPERATIONS, partition), offset)
                self.fold(page)
                if partition not in self._stopped:
                    self._next[partition] = min(end, after)
                return True
        return False

    def fold(self, messages: Iterable[ArchivedMessage]) -> None:
        """Fold what was copied just now, in the order of its offsets."""
        batch = Batch(self._store.vault)
        for message in messages:
            partition = message.partition
            if partition in self._stopped or message.offset < self._next.get(partition, 0):
                continue
            try:
                self._fold(message, batch)
            except PartitionStopped as stopped:
                self._stopped.add(partition)
                self._on_stopped(str(stopped))
                continue
            self._next[partition] = message.offset + 1
            hashed = record_hash(message.value or b"")
            batch.reach(Position(partition, message.offset + 1, hashed))
            if batch.is_full():
                self._store.write(batch)
                batch = Batch(self._store.vault)
        self._store.write(batch)

    def _fold(self, message: ArchivedMessage, batch: Batch) -> None:
        place = (message.topic, message.partition, message.offset)
        delivered = self._opened(Delivered(*place, message.key, message.value))
        event = None if delivered is None else read_log_event(delivered)
        if delivered is None or event is None:
            return
        is_end = isinstance(event, ConversationErased)
        if not is_end and self._store.is_closed(event.tenant_id, event.conversation_id):
            return
        conversation = self._live.get(event.tenant_id, event.conversation_id)
        derived = reduce(conversation, event)
        if isinstance(derived, Refused):
            if derived.reason is RefusalReason.UNKNOWN_RULES:
                newer = f"rules version {event.rules_version}"
                raise PartitionStopped(newer_at(delivered, newer), delivered.partition)
            return
        stored = message.value if is_sealed(message.value or b"") else None
        batch.add_log(conversation, event, stored or canonical_bytes(event))
        for number, each in enumerate(derived):
            batch.add_derived(each, number)
        batch.add_snapshot_if_due(conversation)
        self._live.hold(conversation)

    def _opened(self, message: Delivered) -> Delivered | None:
        """The message with what was sealed; None if it is passed over, as every reader does."""
        if not is_sealed(message.value or b""):
            return message
        if self._store.vault is None:
            raise sealed_without_keys(message)
        tenant_id, conversation_id = conversation_of(message.key)
        if tenant_id is None or conversation_id is None:
            return None
        try:
            opened = self._store.vault.open(
                Kind.EVENT, tenant_id, conversation_id, message.value or b""
            )
        except (KeyDestroyedError, SealedBytesError):
            return None
        except DataKeyNotThereError as missing:
            raise sealed_without_its_key(message, missing) from missing
        return message._replace(value=opened)
