"""The conversations that a one-process run works on: those in use in memory, the rest on disk.

What was used least recently waits in a temporary file that is gone when the process is. Reading a
conversation back from there costs a small part of what reading it from the store does, and the
store need not be written first.
"""

from __future__ import annotations

from typing import final

from processor.app.held import HeldConversations
from processor.app.temporary_file import TemporaryFile
from processor.engine.conversation import Conversation
from processor.engine.mark import Mark
from processor.engine.snapshot import dump, load
from replay.segment_archive import SegmentStore
from replay.store import Store
from schemas.ids import conversation_key


@final
class LiveConversations:
    """Finds conversations by their ids, and holds as many as weigh `records_max` records.

    At least the conversation that was asked for last is held, however much it weighs.
    """

    def __init__(self, store: Store | SegmentStore, records_max: int) -> None:
        self._store = store
        self._held = HeldConversations(records_max)
        self._waiting = TemporaryFile()
        self._marks: dict[str, Mark] = {}

    def get(self, tenant_id: str, conversation_id: str) -> Conversation:
        """The conversation as far as it got; a new one if there is none. Raises StoreError."""
        key = conversation_key(tenant_id, conversation_id)
        held = self._held.get(key)
        if held is not None:
            return held
        dumped = self._waiting.get(key)
        if dumped is not None:
            conversation = load(dumped)
            conversation.mark = self._marks.pop(key, None)
        else:
            conversation = self._store.conversation(
                tenant_id, conversation_id
            ) or Conversation.empty(tenant_id, conversation_id)
        self.hold(conversation)
        return conversation

    def hold(self, conversation: Conversation) -> None:
        """Weigh a conversation that is new here, or that has grown, and make room for it."""
        for key, dropped in self._held.hold(conversation):
            if dropped.sequence > 0:
                self._waiting.put(key, dump(dropped))
                if dropped.mark is not None:
                    self._marks[key] = dropped.mark
            dropped.release()
