"""Records and batches that a client may send and another cannot read: no partition stops."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import confluent_kafka
import duckdb
import orjson
import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from processor.app.fetched import BatchProblem, FetchedBatches, new_consumer, problem_of
from processor.app.messages import DEAD_LETTERS, OPERATIONS, UTTERANCES, Delivered
from processor.app.partitions import partition_of
from processor.app.reduce_agent import PartitionStopped, read_log_event
from tests.cli.test_commands import standfast
from tests.faults.test_input import utterance, work
from tests.kafka.cluster import Kafka
from tests.kafka.raw import RawName, RawRecord, send_batch
from tests.pipeline.workers import PARTITIONS, make_topics, places, read

KEY = b"acme/c"
HOME = partition_of(KEY, PARTITIONS)
NO_TEXT = RawName(b"na\xffme")


def line(utterance_id: str) -> bytes:
    """An utterance as it is sent."""
    return orjson.dumps(utterance(utterance_id))


def told(*arguments: str) -> list[Any]:
    """What a command prints as JSON."""
    ran = standfast(*arguments)
    assert ran.returncode == 0, ran.stderr
    return [orjson.loads(each) for each in ran.stdout.splitlines()]


def test_no_record_stops_a_reader(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Names of headers that are not UTF-8, too many headers, times out of range: all go on."""
    bootstrap = empty_kafka.bootstrap
    make_topics(bootstrap)
    hostile = [
        RawRecord(KEY, line("u1")),
        RawRecord(KEY, line("bad name"), [(NO_TEXT, b"v")]),
        RawRecord(KEY, line("u2"), [("ce_id", None), ("traceparent", b"\xff"), ("", b"\x00")]),
        RawRecord(KEY, line("many headers"), [("", b"")] * 300_000),
        RawRecord(KEY, line("u3"), timestamp_ms=-1),
        RawRecord(KEY, line("u4"), timestamp_ms=-9_999),
        RawRecord(None, None, [(NO_TEXT, None)]),
        RawRecord(KEY, line("u5")),
    ]
    for topic, partition in ((UTTERANCES, HOME), (OPERATIONS, HOME), (DEAD_LETTERS, 0)):
        for each in hostile if topic == UTTERANCES else [[hostile[1]], [hostile[6]]]:
            records = [each] if isinstance(each, RawRecord) else each
            asyncio.run(send_batch(bootstrap, topic, partition, records))
    asyncio.run(send_batch(bootstrap, UTTERANCES, HOME, hostile[:3]))  # one batch of all kinds
    for store in ("one.duckdb", "two.duckdb"):  # the second one begins with recovery
        work(bootstrap, tmp_path / store)
    assert places(tmp_path / "one.duckdb") == places(tmp_path / "two.duckdb")
    assert len(places(tmp_path / "one.duckdb")) == 5
    letters = [each for each in read(bootstrap, DEAD_LETTERS) if each.partition == HOME]
    said = [(each.value, dict(each.headers)["reason"].decode()) for each in letters]
    no_text = "the name of a header is not UTF-8: na\\xffme"
    assert sorted(said) == [
        (b"", no_text),
        *[(hostile[1].value, no_text)] * 2,
        (hostile[3].value, "more than 100 headers"),
    ]
    at = ("--bootstrap", bootstrap, "--json")
    assert len(told("dead-letters", "list", *at)) == len(letters) + 2
    shown = told("tail", UTTERANCES, *at, "--from-beginning", "--max", "11")
    assert "na\\xffme" in orjson.dumps(shown).decode().replace("\\\\", "\\")
    archive = tmp_path / "archive.duckdb"
    ran = standfast("archive", "--db", str(archive), "--bootstrap", bootstrap, "--until-end")
    assert ran.returncode == 0, ran.stderr
    with duckdb.connect(str(archive), read_only=True) as connection:
        names = "SELECT headers FROM messages WHERE topic = 'utterances' ORDER BY \"offset\""
        kept = [row[0] for row in connection.execute(names).fetchall()]
    assert kept[1] == [{"name": "na\\xffme", "value": b"v"}]


def test_brokers_take_apart_what_producers_compress(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Compression that needs a library which is not here reaches no reader of our topics."""
    bootstrap = empty_kafka.bootstrap
    make_topics(bootstrap)
    codecs = ("gzip", "snappy", "lz4", "zstd")
    for codec in codecs:
        compressed(bootstrap, UTTERANCES, codec, line(codec))
    work(bootstrap, tmp_path / "worker.duckdb")
    assert len(places(tmp_path / "worker.duckdb")) == len(codecs)
    assert not read(bootstrap, DEAD_LETTERS)


def compressed(bootstrap: str, topic: str, codec: str, *values: bytes) -> None:
    """Send values as one batch that the producer compresses."""
    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 200}
    producer = confluent_kafka.Producer(settings)
    for value in values:
        producer.produce(topic, value, KEY, partition=HOME)
    assert producer.flush(20) == 0


def test_a_batch_that_cannot_be_read_is_one_record_and_stops_the_log_alone(kafka: Kafka) -> None:
    """On a topic that is not as we make it: what follows is read; in the log nothing may follow."""

    async def batches() -> list[Any]:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic("not-ours", PARTITIONS, 1)])
        await admin.close()
        await asyncio.to_thread(compressed, kafka.bootstrap, "not-ours", "zstd", b"1" * 500, b"2")
        await send_batch(kafka.bootstrap, "not-ours", HOME, [RawRecord(KEY, b"3")])
        consumer = new_consumer(bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        try:
            consumer.assign([TopicPartition("not-ours", HOME)])
            found = [await consumer.getone() for _ in range(2)]
            consumer.seek(TopicPartition("not-ours", HOME), 1)  # in the middle of the batch
            return [*found, await consumer.getone()]
        finally:
            await consumer.stop()

    unread, after, from_within = asyncio.run(batches())
    assert from_within.value == unread.value
    assert (unread.offset, after.offset, after.value) == (1, 2, b"3")
    (again,) = FetchedBatches(unread.value).next_batch()
    assert again.value == unread.value
    problem = problem_of(unread.headers, BatchProblem)
    assert problem is not None
    assert "from offset 0 to 1 cannot be read" in problem
    assert "zstd" in problem
    delivered = Delivered(OPERATIONS, HOME, 0, unread.key, unread.value, unread.headers)
    with pytest.raises(PartitionStopped, match=r"operations/[0-9]: the messages from offset 0"):
        read_log_event(delivered)
