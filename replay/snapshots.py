"""When a snapshot is due, so that neither reading back nor storing takes long."""

from __future__ import annotations

from collections.abc import Iterator

from processor.engine.conversation import Conversation

STEPS_MAX = 15_000
"""What folding again after a snapshot may cost in the plausibility model; about half a second."""


def is_snapshot_due(conversation: Conversation) -> bool:
    """Whether to take a snapshot after the event that was folded last."""
    return (
        conversation.sequence in _SEQUENCES
        or conversation.state.model.spent - conversation.spent_at_snapshot > STEPS_MAX
    )


def _sequences() -> Iterator[int]:
    """8, and whenever the log has grown by half since the last: a snapshot costs O(1) per event."""
    sequence = 8
    while sequence < 2**60:
        yield sequence
        sequence += sequence // 2


_SEQUENCES = frozenset(_sequences())
