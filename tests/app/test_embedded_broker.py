"""The embedded broker serves aiokafka, and says what to install where it cannot run."""

from __future__ import annotations

import asyncio
import sys

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from processor.app.embedded_broker import PARTITIONS, EmbeddedBroker
from processor.app.errors import BrokerError
from processor.app.settings import kafka_settings
from processor.app.topics import Layout, create


def test_it_keeps_what_is_sent_to_a_topic_that_appears_on_first_use() -> None:
    """The first record makes the topic, with the known number of partitions."""

    async def there_and_back(bootstrap: str) -> tuple[set[int], bytes]:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait("new", b"hello", partition=1)
            partitions = await producer.partitions_for("new")
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        consumer.assign([TopicPartition("new", 1)])
        async with consumer, asyncio.timeout(20):
            return partitions, (await consumer.getone()).value

    with EmbeddedBroker() as broker:
        partitions, value = asyncio.run(there_and_back(broker.bootstrap))
    assert partitions == set(range(PARTITIONS))
    assert value == b"hello"


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with the command, where confluent-kafka is not installed."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(BrokerError, match=r"pip install 'standfast\[embedded\]'$"):
        EmbeddedBroker()


def test_topics_cannot_be_created_on_it() -> None:
    """It has no such request, and the error says that none is needed."""
    with EmbeddedBroker() as broker, pytest.raises(BrokerError, match="makes them on first use"):
        asyncio.run(create(kafka_settings(broker.bootstrap), Layout()))
