"""The brokers that the tests run on do what the tests rely on."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import time

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import UnknownTopicOrPartitionError

from tests.kafka.cluster import HOST, Kafka, KafkaFailedError
from tests.kafka.fixtures import StartKafka, delete_topics
from tests.kafka.software import ROOT, missing


async def create(bootstrap: str, name: str, replicas: int = 1, **settings: str) -> None:
    """Create a topic of one partition."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, 1, replicas, topic_configs=settings)])
        while name not in await admin.list_topics():
            await asyncio.sleep(0.05)
    finally:
        await admin.close()


async def send(bootstrap: str, topic: str, *values: bytes) -> None:
    """Send and wait until every value is acknowledged."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all") as producer:
        for value in values:
            await producer.send_and_wait(topic, value, partition=0)


async def read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """The first `count` values of partition 0."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    async with consumer:
        return [(await asyncio.wait_for(consumer.getone(), 30)).value for _ in range(count)]


def test_a_record_comes_back_from_the_shared_broker(empty_kafka: Kafka) -> None:
    """What aiokafka sends is what it reads, and a topic of an earlier test is gone."""

    async def there_and_back(value: bytes) -> list[bytes]:
        await create(empty_kafka.bootstrap, "there-and-back")
        await send(empty_kafka.bootstrap, "there-and-back", value)
        read_back = await read(empty_kafka.bootstrap, "there-and-back", 1)
        await delete_topics(empty_kafka.bootstrap)
        return read_back

    assert asyncio.run(there_and_back(b"one")) == [b"one"]
    assert asyncio.run(there_and_back(b"two")) == [b"two"]


def test_a_topic_that_is_not_there_is_not_created(empty_kafka: Kafka) -> None:
    """Sending to an unknown topic fails: topics are provisioned."""

    async def send_nowhere() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=empty_kafka.bootstrap, request_timeout_ms=1_000
        ) as producer:
            await producer.send_and_wait("nowhere", b"lost")

    with pytest.raises(UnknownTopicOrPartitionError):
        asyncio.run(send_nowhere())


def test_a_broker_keeps_its_port_and_data_through_kill_9(start_kafka: StartKafka) -> None:
    """After kill -9 and a start on the same folder, acknowledged records are read again."""
    kafka = start_kafka()
    address = kafka.bootstrap
    asyncio.run(create(address, "log"))
    asyncio.run(send(address, "log", b"one", b"two"))
    (broker,) = kafka.brokers
    broker.kill()
    assert not broker.running
    broker.start()
    assert kafka.bootstrap == address
    asyncio.run(send(address, "log", b"three"))
    assert asyncio.run(read(address, "log", 3)) == [b"one", b"two", b"three"]


def test_three_brokers_replicate(start_kafka: StartKafka) -> None:
    """With replication 3 and two in sync, the log is written and read while a broker is down."""
    kafka = start_kafka(3)
    asyncio.run(create(kafka.bootstrap, "log", 3, **{"min.insync.replicas": "2"}))
    asyncio.run(send(kafka.bootstrap, "log", b"one"))
    kafka.brokers[0].kill()
    asyncio.run(send(kafka.bootstrap, "log", b"two"))
    assert asyncio.run(read(kafka.bootstrap, "log", 2)) == [b"one", b"two"]
    kafka.brokers[0].start()
    kafka.brokers[1].stop()
    asyncio.run(send(kafka.bootstrap, "log", b"three"))
    assert asyncio.run(read(kafka.bootstrap, "log", 3)) == [b"one", b"two", b"three"]


@pytest.mark.kafka
def test_a_failed_start_leaves_its_log_and_nothing_else() -> None:
    """A broker that cannot start raises, names its log with the cause, and no process is left."""
    kafka = Kafka(settings={"num.io.threads": "none"})
    with pytest.raises(KafkaFailedError, match=r"see .*/broker-1\.log"):
        kafka.start()
    log = kafka.brokers[0].log
    assert b"num.io.threads" in log.read_bytes()
    assert not kafka.brokers[0].running
    assert not kafka.folder.exists()
    shutil.rmtree(kafka.logs)


@pytest.mark.kafka
def test_brokers_end_with_the_run_that_was_killed() -> None:
    """A test run that is itself killed with -9 leaves no broker behind."""
    script = (
        "import time; from tests.kafka.cluster import Kafka; kafka = Kafka(); kafka.start();"
        "print(kafka.brokers[0].port, kafka.folder, kafka.logs, flush=True); time.sleep(600)"
    )
    run = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT)
    with run:
        assert run.stdout is not None
        port, *folders = run.stdout.readline().split()
        run.kill()
    deadline = time.monotonic() + 20
    while _listens(int(port)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _listens(int(port))
    for folder in folders:
        shutil.rmtree(folder.decode())


def test_whatever_broker_there_is_has_topics_and_keeps_records(broker: str) -> None:
    """The fixture `broker` works with Apache Kafka and without."""

    async def there_and_back() -> list[bytes]:
        if missing() is None:
            await create(broker, "on-any-broker")
        await send(broker, "on-any-broker", b"hello")
        return await read(broker, "on-any-broker", 1)

    assert asyncio.run(there_and_back()) == [b"hello"]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
