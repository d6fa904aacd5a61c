"""A conversation as its page tells it: folded from a store once, and from there on as it grows."""

from __future__ import annotations

from typing import Any, final

from processor.engine.conversation import Conversation
from replay.reading import ConversationReader
from replay.report.data import ReportData


@final
class Story:
    """One conversation of a store; `conversation.sequence` says up to where it is told."""

    def __init__(self, tenant_id: str, conversation_id: str) -> None:
        self.conversation = Conversation.empty(tenant_id, conversation_id)
        self._data = ReportData()

    def catch_up(self, reader: ConversationReader) -> bool:
        """Take what the store has beyond; whether there is anything at all. Raises StoreError."""
        for event, folded in reader.told(self.conversation):
            self._data.take(self.conversation, event, folded)
        return self.conversation.sequence > 0

    def value(self) -> dict[str, Any]:
        """What the page shows."""
        return self._data.value(self.conversation)
