"""A long queue at the start: fetching one topic must not keep the other from being fetched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from processor.app.messages import OPERATIONS, UTTERANCES
from processor.app.partitions import partition_of
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import PARTITIONS, make_topics, running_worker, stop, wait_until_done

QUEUED = 60_000
CONVERSATIONS = 300
BATCH_BYTES = 1_000_000
STANDSTILL_SECONDS_MAX = 60.0


def messages() -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each utterance: an observation each, some large."""
    for number in range(QUEUED):
        conversation = f"c{number % CONVERSATIONS}"
        said: dict[str, Any] = {
            "tenant_id": f"t{number % 7}",
            "conversation_id": conversation,
            "utterance_id": f"u{number}",
            "speaker": "ann",
            "text": "x" * (20_000 if number % 1_000 == 0 else 20),
            "at": "2026-03-01T02:31:00Z",
            "operations": [{"op": "observe", "record": f"r{number}", "claim": "c"}],
        }
        yield f"{said['tenant_id']}/{conversation}".encode(), orjson.dumps(said)


async def queue_all(bootstrap: str) -> None:
    """Publish them in batches as large as may be."""
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", linger_ms=200, max_batch_size=BATCH_BYTES
    ) as producer:
        sent = [
            await producer.send(UTTERANCES, value, key, partition_of(key, PARTITIONS))
            for key, value in messages()
        ]
        await asyncio.gather(*sent)


async def logged(bootstrap: str) -> int:
    """How many events the log has."""
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        places = [TopicPartition(OPERATIONS, each) for each in range(PARTITIONS)]
        return sum((await consumer.end_offsets(places)).values())


def test_sixty_thousand_queued_do_not_stall(empty_kafka: Kafka, tmp_path: Path) -> None:
    """The log never stands still, and in the end has each of them once."""
    bootstrap = empty_kafka.bootstrap
    make_topics(bootstrap)
    asyncio.run(queue_all(bootstrap))
    with running_worker(bootstrap, tmp_path / "worker.duckdb") as worker:
        count, since = 0, time.monotonic()
        while count < QUEUED:
            time.sleep(1)
            now = asyncio.run(logged(bootstrap))
            if now > count:
                count, since = now, time.monotonic()
            assert time.monotonic() - since < STANDSTILL_SECONDS_MAX, f"it stands at {count}"
        wait_until_done(bootstrap)
        assert asyncio.run(logged(bootstrap)) == QUEUED
        assert stop(worker) == 0
