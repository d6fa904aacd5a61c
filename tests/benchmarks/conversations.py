"""Conversations of any length for the benchmarks, the same every time."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import orjson

from processor.app.interpret import interpret
from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused, advance
from schemas.log import LogEvent
from schemas.wire import decode_utterance

TOPIC_TURNS = 25
"""A conversation moves on: records rest on what was said within the same topic."""


def utterances(turns: int, seed: int = 7) -> Iterator[dict[str, object]]:
    """One statement per turn: an observation, now and then a hypothesis, a support, a revision."""
    chance = Random(seed)
    topic: list[str] = []
    for turn in range(1, turns + 1):
        if turn % TOPIC_TURNS == 1:
            topic = []
        operations: list[dict[str, object]] = []
        for part in range(2):
            record = f"r{turn}.{part}"
            premises = sorted(set(chance.choices(topic, k=min(len(topic), 2)))) if topic else []
            operations.append(
                {
                    "op": "observe" if part == 0 or not premises else "hypothesize",
                    "record": record,
                    "claim": f"what was seen at turn {turn}, part {part}, in about as many words",
                    "premises": premises,
                }
            )
            topic.append(record)
        if turn % 5 == 0:
            evidence = {"record": f"e{turn}", "claim": "a second look that points the same way"}
            operations.append(
                {"op": "support", "target": chance.choice(topic[:-1]), "evidence": evidence}
            )
        if turn % 20 == 0:
            by = {"record": f"n{turn}", "claim": "it was a faulty reading"}
            operations.append({"op": "revise", "target": chance.choice(topic), "by": by})
        yield {
            "conversation_id": "bench",
            "utterance_id": f"u{turn}",
            "speaker": ("alice", "bob", "carol")[turn % 3],
            "at": "2026-03-01T02:31:00Z",
            "text": "",
            "operations": operations,
        }


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
