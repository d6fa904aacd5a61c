"""A worker's memory is bounded, however many conversations pass through it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from processor.app.held import CONVERSATION_WEIGHT
from processor.app.interpret import AlreadyInLog, Unusable, interpret
from processor.app.local_store import LocalStore
from processor.app.messages import OPERATIONS, Delivered
from processor.evidence.fold import Refused, advance
from schemas.wire import decode_utterance
from tests.faults.logs import utterance
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import make_topics, running_worker, say, stop, wait_until_done

RECORDS = 20
"""That each utterance introduces."""
UTTERANCES = 2
"""That each conversation has."""
WEIGHT = 8 + RECORDS * UTTERANCES
"""Of a conversation, in records."""
MARGIN_MB = 48
"""What the second half may add, buffers that are fuller than before; unbounded it adds 105."""


def utterances(first: int, count: int) -> Iterator[dict[str, Any]]:
    """All that is said in some conversations; those that begin together end together."""
    for number in range(first, first + count):
        for turn in range(UTTERANCES):
            yield {
                "conversation_id": f"c{number}",
                "utterance_id": f"u{turn}",
                "speaker": "ann",
                "text": "said",
                "at": "2026-03-01T02:00:00Z",
                "operations": [
                    {"op": "observe", "record": f"o{turn}-{each}", "claim": f"{number} seen " * 12}
                    for each in range(RECORDS)
                ],
            }


def rss_mb(pid: int) -> float:
    """What the process has in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4_096 / 1_048_576


def growth_mb(kafka: Kafka, store: Path, conversations: int, records_max: int) -> float:
    """What a worker grows by while the second half of the conversations passes through it."""
    make_topics(kafka.bootstrap)
    settings = {"STANDFAST_WORKER_RECORDS_MAX": str(records_max)}
    half = conversations // 2
    sizes = []
    with running_worker(kafka.bootstrap, store, **settings) as worker:
        for first in (0, half):
            say(kafka.bootstrap, list(utterances(first, half)))
            wait_until_done(kafka.bootstrap, 60 + conversations / 20)
            sizes.append(rss_mb(worker.pid))
        assert stop(worker) == 0
    print(conversations, records_max, sizes, file=sys.stderr)
    return sizes[1] - sizes[0]


@pytest.mark.parametrize(
    "conversations", [5_000, pytest.param(50_000, marks=pytest.mark.thorough)], ids=str
)
def test_memory_does_not_grow_with_the_number_of_conversations(
    empty_kafka: Kafka, tmp_path: Path, conversations: int
) -> None:
    """Bounded to a tenth of them, the second half adds next to nothing to what the first took."""
    tenth = conversations // 10 * WEIGHT
    assert growth_mb(empty_kafka, tmp_path / "worker.duckdb", conversations, tenth) < MARGIN_MB


def test_a_store_holds_no_more_than_its_bound(tmp_path: Path) -> None:
    """Whichever conversations come, and come again, a tenth of them is in memory, and none lost."""
    bound = 500 * (CONVERSATION_WEIGHT + 1)

    async def pass_through() -> None:
        async with LocalStore(tmp_path / "worker.duckdb", bound) as store:
            for turn in range(2):
                for number in range(5_000 if turn == 0 else 600):
                    ids = ("acme", f"c{number}")
                    conversation = await store.conversation(*ids)
                    assert conversation.sequence == turn
                    said = decode_utterance(orjson.dumps(utterance(ids, turn)))
                    event = interpret(conversation, said)
                    assert not isinstance(event, (AlreadyInLog, Unusable))
                    assert not isinstance(advance(conversation, event), Refused)
                    store.keep(conversation, event, (), Delivered(OPERATIONS, 0, number, b"", b""))
                    assert store.held().weight <= bound
                    assert store.held().conversations <= 500

    asyncio.run(pass_through())
