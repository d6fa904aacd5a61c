"""Drafts that come again: what their check said is in the store."""

from __future__ import annotations

from typing import final

from replay.store import Store
from schemas.utterance import Utterance, UtteranceKind

LOOK_UP_MAX = 10_000
"""How many are looked up together: one query reads every verdict of the store."""


@final
class RepeatedDrafts:
    """Finds out whether any repeated draft had an ungrounded claim, in bounded memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[tuple[str, str, str]] = []
        self._found = False

    def add(self, utterance: Utterance) -> None:
        """An utterance that the log has already; only a draft counts."""
        if self._found or utterance.kind is not UtteranceKind.CANDIDATE:
            return
        draft = (utterance.tenant_id, utterance.conversation_id, utterance.utterance_id)
        self._waiting.append(draft)
        if len(self._waiting) >= LOOK_UP_MAX:
            self._look_up()

    def any_ungrounded(self) -> bool:
        """Whether a claim of any of them was ungrounded when it was checked."""
        if self._waiting:
            self._look_up()
        return self._found

    def _look_up(self) -> None:
        self._found = self._found or self._store.any_ungrounded(self._waiting)
        self._waiting = []
