"""Logs of conversations of any length for the benchmarks, the same every time."""

from __future__ import annotations

import orjson

from processor.app.interpret import interpret
from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused, advance
from processor.scenarios.growing import utterances
from schemas.log import LogEvent
from schemas.wire import decode_utterance

__all__ = ["log_of", "utterances"]


def log_of(turns: int, seed: int = 7) -> tuple[list[LogEvent], Conversation]:
    """The log of such a conversation, and the conversation as the log leaves it."""
    conversation = Conversation.empty("default", "bench")
    events: list[LogEvent] = []
    for utterance in utterances(turns, seed):
        event = interpret(conversation, decode_utterance(orjson.dumps(utterance)))
        assert not isinstance(event, tuple), event
        assert not isinstance(advance(conversation, event), Refused)
        events.append(event)
    return events, conversation
