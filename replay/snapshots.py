"""When a snapshot or a delta is due, so that neither reading back nor storing takes long."""

from __future__ import annotations

from collections.abc import Iterator

from processor.engine.conversation import Conversation

STEPS_MAX = 15_000
"""What folding again after a snapshot may cost in the plausibility model; about half a second."""
DELTAS_FROM_EVENTS = 2_048
"""A shorter conversation is folded from its newest snapshot as quickly as deltas are read."""
DELTA_EVENTS_MIN = 256
DELTA_SHARE = 64
"""A delta may look at the whole state, so it waits until the log has grown by such a part."""


def is_snapshot_due(conversation: Conversation) -> bool:
    """Whether to take a snapshot after the event that was folded last."""
    return (
        conversation.sequence in _SEQUENCES
        or conversation.state.model.spent - conversation.spent_at_snapshot > STEPS_MAX
    )


def has_deltas(conversation: Conversation) -> bool:
    """Whether what changes after a snapshot taken now is worth deltas."""
    return conversation.sequence >= DELTAS_FROM_EVENTS


def is_delta_due(conversation: Conversation) -> bool:
    """Whether to take a delta after the event that was folded last, if no snapshot is due."""
    mark = conversation.mark
    if mark is None:
        return False
    wait = max(DELTA_EVENTS_MIN, conversation.sequence // DELTA_SHARE)
    return conversation.sequence - mark.sequence >= wait


def _sequences() -> Iterator[int]:
    """8, and whenever the log has grown by half since the last: a snapshot costs O(1) per event."""
    sequence = 8
    while sequence < 2**60:
        yield sequence
        sequence += sequence // 2


_SEQUENCES = frozenset(_sequences())
