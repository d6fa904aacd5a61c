"""Sending several messages of which a topic does not take one."""

from __future__ import annotations

import asyncio

from processor.app.messages import Outgoing
from processor.app.sender import Sender
from schemas.topics import TOPICS
from tests.kafka.cluster import Kafka
from tests.pipeline.test_brokers import read
from tests.pipeline.workers import make_topics

LIMIT = next(topic.message_bytes_max for topic in TOPICS if topic.name == "verdicts")


def test_what_is_too_large_is_given_back_when_the_rest_is_sent(empty_kafka: Kafka) -> None:
    """It comes back, the others are there, and the largest that may be sent is taken."""
    make_topics(empty_kafka.bootstrap)

    async def send() -> list[Outgoing]:
        sizes = (10, LIMIT, LIMIT - 300, 20)
        messages = [Outgoing("verdicts", 0, b"k", b"x" * size, ()) for size in sizes]
        async with Sender({"bootstrap_servers": empty_kafka.bootstrap}) as sender:
            given_back = await sender.confirmed_all(await sender.begin_all(messages))
        there = await read(empty_kafka.bootstrap, "verdicts", 3)
        assert [len(each) for each in there] == [10, LIMIT - 300, 20]
        return given_back

    assert [len(each.value) for each in asyncio.run(send())] == [LIMIT]
