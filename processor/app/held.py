"""The conversations in memory: those used least recently leave when all weigh too much."""

from __future__ import annotations

from collections import OrderedDict
from typing import final

from processor.engine.conversation import Conversation
from schemas.ids import conversation_key

CONVERSATION_WEIGHT = 8
"""What a conversation costs beside its records, in records."""
UTTERANCES_PER_RECORD = 4
"""That many ids of utterances weigh what a record does."""


@final
class HeldConversations:
    """As many as weigh `weight_max` together, and at least the one that was held last.

    Those whose keys are in `pinned` do not leave.
    """

    def __init__(self, weight_max: int) -> None:
        self._weight_max = weight_max
        self.pinned: set[str] = set()
        self._held: OrderedDict[str, tuple[Conversation, int]] = OrderedDict()
        self.weight = 0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def get(self, key: str) -> Conversation | None:
        """The conversation, which is in use again; None if it is not held."""
        held = self._held.get(key)
        if held is None:
            return None
        self._held.move_to_end(key)
        return held[0]

    def hold(self, conversation: Conversation) -> list[tuple[str, Conversation]]:
        """Weigh one that is new here, or that has grown; by key, those that leave for it."""
        key = conversation_key(conversation.tenant_id, conversation.conversation_id)
        _, before = self._held.pop(key, (conversation, 0))
        weight = (
            CONVERSATION_WEIGHT
            + len(conversation.state.records)
            + len(conversation.utterances) // UTTERANCES_PER_RECORD
        )
        self._held[key] = (conversation, weight)
        self.weight += weight - before
        leaving: list[tuple[str, Conversation]] = []
        while self.weight > self._weight_max and len(self._held) > 1:
            oldest = next((each for each in self._held if each not in self.pinned), key)
            if oldest == key:
                break
            dropped, lost = self._held.pop(oldest)
            self.weight -= lost
            leaving.append((oldest, dropped))
        return leaving

    def clear(self) -> None:
        """Hold none."""
        self._held.clear()
        self.weight = 0
