"""The conversations that a one-process run works on: those in use in memory, the rest on disk.

What was used least recently waits in a temporary file that is gone when the process is. Reading a
conversation back from there costs a small part of what reading it from the store does, and the
store need not be written first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import final

from processor.app.temporary_file import TemporaryFile
from processor.engine.conversation import Conversation
from processor.engine.snapshot import dump, load
from replay.store import Store
from schemas.ids import conversation_key

EMPTY_WEIGHT = 8
"""What a conversation costs before anything is said in it, in records."""


@final
class LiveConversations:
    """Finds conversations by their ids, and holds as many as weigh `records_max` records.

    At least the conversation that was asked for last is held, however much it weighs.
    """

    def __init__(self, store: Store, records_max: int) -> None:
        self._store = store
        self._records_max = records_max
        self._live: OrderedDict[str, tuple[Conversation, int]] = OrderedDict()
        self._weight = 0
        self._waiting = TemporaryFile()

    def get(self, tenant_id: str, conversation_id: str) -> Conversation:
        """The conversation as far as it got; a new one if there is none. Raises StoreError."""
        key = conversation_key(tenant_id, conversation_id)
        held = self._live.get(key)
        if held is not None:
            self._live.move_to_end(key)
            return held[0]
        dumped = self._waiting.get(key)
        if dumped is not None:
            conversation = load(dumped)
        else:
            conversation = self._store.conversation(
                tenant_id, conversation_id
            ) or Conversation.empty(tenant_id, conversation_id)
        self.hold(conversation)
        return conversation

    def hold(self, conversation: Conversation) -> None:
        """Weigh a conversation that is new here, or that has grown, and make room for it."""
        key = conversation_key(conversation.tenant_id, conversation.conversation_id)
        _, before = self._live.pop(key, (conversation, 0))
        weight = EMPTY_WEIGHT + len(conversation.state.records) + len(conversation.utterances) // 4
        self._live[key] = (conversation, weight)
        self._weight += weight - before
        while self._weight > self._records_max and len(self._live) > 1:
            oldest, (dropped, lost) = self._live.popitem(last=False)
            self._weight -= lost
            if dropped.sequence > 0:
                self._waiting.put(oldest, dump(dropped))
            dropped.release()
