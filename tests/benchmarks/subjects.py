"""What the worker is compared with, each a process: `python -m tests.benchmarks.subjects`.

`faust`: two empty agents of a plain Faust app, chained by one send. `loop`: the same reads and
writes in a bare loop of aiokafka. Both acknowledge what is done in batches, and run until they are
killed. The Faust app commits as often as the worker, because the last commit ends a measurement.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import faust
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from processor.app.faust_app import COMMIT_SECONDS
from processor.app.messages import OPERATIONS, UTTERANCES

BATCH = 500
GROUP = "standfast"


def producer(bootstrap: str) -> AIOKafkaProducer:
    """The producer of both, as the worker has it."""
    return AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, linger_ms=5
    )


async def faust_agents(bootstrap: str) -> None:
    """Forward every utterance to the log, and read the log."""
    app = faust.App(
        GROUP,
        broker=f"aiokafka://{bootstrap}",
        store="memory://",
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        stream_wait_empty=False,
        consumer_auto_offset_reset="earliest",
        broker_commit_interval=COMMIT_SECONDS,
    )
    sender = producer(bootstrap)
    await sender.start()
    raw = {"key_type": bytes, "value_type": bytes, "key_serializer": "raw"}
    utterances = app.topic(UTTERANCES, value_serializer="raw", **raw)
    operations = app.topic(OPERATIONS, value_serializer="raw", **raw)
    waiting: list[tuple[Any, Any]] = []

    async def acknowledge() -> None:
        while True:
            taken, waiting[:] = waiting[:BATCH], waiting[BATCH:]
            for event, sent in taken:
                await sent
                event.ack()
            if not taken:
                await asyncio.sleep(0.005)

    async def forward(stream: Any) -> None:
        async for event in stream.noack().events():
            message = event.message
            sent = await sender.send(
                OPERATIONS, value=message.value, key=message.key, partition=message.partition
            )
            waiting.append((event, sent))

    async def read(stream: Any) -> None:
        async for event in stream.noack().events():
            event.ack()

    app.agent(utterances, name="forward")(forward)
    app.agent(operations, name="read")(read)
    app.finalize()
    await app.start()
    await acknowledge()


async def bare_loop(bootstrap: str) -> None:
    """The same with nothing between aiokafka and the broker."""
    consumer = AIOKafkaConsumer(
        UTTERANCES,
        OPERATIONS,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    sender = producer(bootstrap)
    await asyncio.gather(consumer.start(), sender.start())
    while True:
        batches = await consumer.getmany(timeout_ms=50, max_records=BATCH)
        sent = [
            await sender.send(
                OPERATIONS, value=record.value, key=record.key, partition=place.partition
            )
            for place, records in batches.items()
            if place.topic == UTTERANCES
            for record in records
        ]
        await asyncio.gather(*sent)
        offsets: dict[TopicPartition, int] = {
            place: records[-1].offset + 1 for place, records in batches.items()
        }
        if offsets:
            await consumer.commit(offsets)


if __name__ == "__main__":
    asyncio.run({"faust": faust_agents, "loop": bare_loop}[sys.argv[1]](sys.argv[2]))
