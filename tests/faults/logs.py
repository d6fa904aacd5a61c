"""Long logs that are written to Kafka directly, and what a worker said of its recovery."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from pathlib import Path
from typing import Any

import orjson
from aiokafka import AIOKafkaProducer, TopicPartition

from processor.app.interpret import AlreadyInLog, Unusable, interpret
from processor.app.messages import OPERATIONS, UTTERANCES, derived_messages, log_message
from processor.app.partitions import partition_of
from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused, advance
from processor.render.reduce import reduce
from replay.store import Store
from schemas.ids import conversation_key
from schemas.log import LogEvent
from schemas.wire import decode_utterance
from tests.kafka.groups import commit_from_outside
from tests.pipeline.workers import GROUP, PARTITIONS

PARTITION = 0
START = datetime(2026, 3, 1, tzinfo=UTC)
UNDER_WAY_MAX = 500

Ids = tuple[str, str]


def conversations_of_partition(number: int) -> list[Ids]:
    """So many conversations, all on one partition."""
    ids = (("acme", f"c{each}") for each in count())
    ours = (
        each
        for each in ids
        if partition_of(conversation_key(*each).encode(), PARTITIONS) == PARTITION
    )
    return list(islice(ours, number))


def utterance(ids: Ids, number: int) -> dict[str, Any]:
    """A statement with one record, which rests on the one before; now and then one is withdrawn."""
    operations: list[dict[str, Any]] = [
        {
            "op": "observe",
            "record": f"o{number}",
            "claim": f"reading {number}",
            "premises": [f"o{number - 1}"] if number else [],
        }
    ]
    if number % 7 == 6:
        operations.append({"op": "revise", "target": f"o{number - 3}", "by": f"o{number}"})
    return {
        "tenant_id": ids[0],
        "conversation_id": ids[1],
        "utterance_id": f"u{number}",
        "speaker": "ann",
        "text": "said",
        "at": (START + timedelta(seconds=number)).isoformat(),
        "operations": operations,
    }


class Reference:
    """The conversations as they should be, and what should be emitted, by id."""

    def __init__(self, ids: list[Ids]) -> None:
        self.conversations = {each: Conversation.empty(*each) for each in ids}
        self.emitted: dict[str, bytes] = {}

    def say(self, ids: Ids, *, emit: bool = False) -> tuple[dict[str, Any], LogEvent]:
        """The next utterance of a conversation, and its event; `emit` notes what comes of it."""
        conversation = self.conversations[ids]
        said = utterance(ids, conversation.sequence)
        event = interpret(conversation, decode_utterance(orjson.dumps(said)))
        assert not isinstance(event, (AlreadyInLog, Unusable))
        if not emit:
            assert not isinstance(advance(conversation, event), Refused)
            return said, event
        derived = reduce(conversation, event)
        assert not isinstance(derived, Refused)
        for message in derived_messages(derived, event.at, PARTITION, frozenset()):
            assert message.value is not None
            self.emitted[dict(message.headers)["ce_id"].decode()] = message.value
        return said, event

    def digests(self) -> dict[Ids, tuple[int, str, str]]:
        """Of each conversation the last sequence and both digests."""
        return {ids: _digests(each) for ids, each in self.conversations.items()}


def _digests(conversation: Conversation) -> tuple[int, str, str]:
    return conversation.sequence, conversation.digest, conversation.state_digest()


def digests_in(store: Path, ids: list[Ids]) -> dict[Ids, tuple[int, str, str]]:
    """The same, of the conversations in the store of a worker."""
    found = {}
    with Store(store, read_only=True) as opened:
        for each in ids:
            conversation = opened.conversation(*each)
            assert conversation is not None, each
            found[each] = _digests(conversation)
    return found


def write_log(bootstrap: str, events: Iterator[LogEvent]) -> int:
    """Append events to one partition, and let the group have committed all; how many there are."""
    return asyncio.run(_write_log(bootstrap, events))


async def _write_log(bootstrap: str, events: Iterator[LogEvent]) -> int:
    written = 0
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, linger_ms=5
    ) as producer:
        while some := list(islice(events, UNDER_WAY_MAX)):
            sent = []
            for event in some:
                message = log_message(event, PARTITION)
                sent.append(
                    await producer.send(
                        OPERATIONS, value=message.value, key=message.key, partition=PARTITION
                    )
                )
            await asyncio.gather(*sent)
            written += len(sent)
    places = [
        TopicPartition(topic, partition)
        for topic in (OPERATIONS, UTTERANCES)
        for partition in range(PARTITIONS)
    ]
    await commit_from_outside(bootstrap, GROUP, places)
    return written


def said_by(store: Path, event: str) -> list[dict[str, Any]]:
    """What the worker of the store has logged under a name, in order."""
    lines = store.with_suffix(".log").read_bytes().splitlines()
    whole = (line for line in lines if line.startswith(b"{") and line.endswith(b"}"))
    found = [orjson.loads(line) for line in whole]
    return [line for line in found if line["event"] == event]


def recovered(store: Path) -> dict[str, Any]:
    """What the worker of the store said last of the recovery of the partition."""
    of_partition = [each for each in said_by(store, "recovered") if each["partition"] == PARTITION]
    print(of_partition[-1], file=sys.stderr)
    return of_partition[-1]
