"""Reading ranges of the log."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaProducer

from processor.app.messages import OPERATIONS
from processor.app.recovery import log_range, log_reader
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import make_topics


def test_ranges_of_several_partitions_are_read_and_the_reader_ends(empty_kafka: Kafka) -> None:
    """Exactly the offsets asked for, in order; ending in the middle of a fetch ends."""
    make_topics(empty_kafka.bootstrap)
    connection = {"bootstrap_servers": empty_kafka.bootstrap}
    ranges = [(0, 0, 3), (1, 2, 5), (0, 1, 1), (1, 0, 5), (0, 4, 5), (2, 1, 4)]

    async def read() -> None:
        async with AIOKafkaProducer(**connection) as producer:
            for offset in range(5):
                for partition in range(3):
                    await producer.send_and_wait(
                        OPERATIONS, f"{partition}/{offset}".encode(), partition=partition
                    )
        for count in range(len(ranges)):
            async with log_reader(connection, [0, 1, 2]) as reader:
                for partition, start, stop in ranges[: count + 1]:
                    found = [each.value async for each in log_range(reader, partition, start, stop)]
                    assert found == [f"{partition}/{n}".encode() for n in range(start, stop)]

    asyncio.run(asyncio.wait_for(read(), 60))
