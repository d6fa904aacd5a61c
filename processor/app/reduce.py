"""From a log event to everything that is emitted for it."""

from __future__ import annotations

from processor.engine.conversation import Conversation
from processor.engine.derive import envelope
from processor.evidence.fold import Refused, fold
from processor.render.context import render_change
from schemas.derived import ContextUpdate, DerivedEvent
from schemas.log import LogEvent


def reduce(conversation: Conversation, event: LogEvent) -> tuple[DerivedEvent, ...] | Refused:
    """Fold the event and say what came of it, the renderer's summary last."""
    folded = fold(conversation, event)
    if isinstance(folded, Refused):
        return folded
    outcome = folded.advanced.outcome
    if outcome is None:
        return folded.events
    text = render_change(conversation.state, outcome, conversation.turn)
    if not text:
        return folded.events
    update = ContextUpdate(**envelope(conversation, ContextUpdate.TYPE, 0), text=text)
    return (*folded.events, update)
