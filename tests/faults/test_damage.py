"""Bytes that a broker's disk gives back changed: nothing is passed over."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_UNCOMMITTED, PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from processor.app.fetched import Damage, FetchedBatches, problem_of
from processor.app.messages import DEAD_LETTERS, OPERATIONS, UTTERANCES
from processor.app.partitions import partition_of
from processor.app.recovery import committed_places
from processor.app.settings import KafkaSettings
from tests.cli.test_commands import standfast
from tests.faults.logs import said_by
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import StartKafka
from tests.pipeline.workers import (
    GROUP,
    PARTITIONS,
    make_topics,
    read,
    running_worker,
    say,
    stop,
    work_through,
)
from tests.waiting import wait_until
from tests.web.fake import observe, statement

HOME = partition_of(b"acme/c1", PARTITIONS)
AWAY = next(
    name for name in "abcdefgh" if partition_of(f"acme/{name}".encode(), PARTITIONS) != HOME
)


def batch(first: int, values: list[bytes]) -> bytes:
    """A batch as a broker stores it."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 65_536)
    for number, value in enumerate(values):
        builder.append(number, 1_700_000_000_000, b"key", value, [("name", b"header")])
    built = bytearray(builder.build())
    built[:8] = first.to_bytes(8)
    return bytes(built)


def read_from(offset: int, fetched: bytes) -> list[Any]:
    """What aiokafka makes of fetched bytes when it reads on from an offset."""
    place = TopicPartition("topic", 0)
    batches = FetchedBatches(fetched)
    if not batches.has_next():
        return []
    options = (None, None, True, READ_UNCOMMITTED)
    return list(PartitionRecords(place, batches, [], offset, *options))


def values(records: list[Any]) -> list[tuple[int, bytes]]:
    """Offset and value of each."""
    return [(record.offset, record.value) for record in records]


EPOCH = range(12, 16)
"""Where in a batch the leader's epoch stands, which is in no sum either."""
VALUES = [b"one", b"two", b"three", b"four"]
STORED = batch(10, VALUES[:2]) + batch(12, VALUES[2:])


@pytest.mark.parametrize("start", range(10, 14))
def test_whichever_byte_is_flipped_nothing_is_passed_over(start: int) -> None:
    """From any offset on, what is read is what was written, or ends in front of the damage."""
    second = len(batch(10, VALUES[:2]))
    begin = 0 if start < 12 else second  # a broker begins with the batch that has the offset
    written = list(enumerate(VALUES, 10))[start - 10 :]
    assert values(read_from(start, STORED[begin:])) == written
    for at in range(begin, len(STORED)):
        in_batch = at if at < second else at - second
        if in_batch < 8:
            continue  # the first offset of a batch stands in no sum
        sound = written[: max(0, 12 - start)] if at >= second else []
        for bit in (0, 3, 7):
            flipped = bytearray(STORED)
            flipped[at] ^= 1 << bit
            records = read_from(start, bytes(flipped[begin:]))
            if in_batch in EPOCH:
                assert values(records) == written
            elif values(records) == sound:  # it looks cut short, as the end of a fetch may be
                (again,) = read_from(12, bytes(flipped[second:]))
                assert problem_of(again.headers, Damage), (at, bit)
            else:
                *before, damaged = records
                assert (values(before), at >= begin) == (sound, True)
                assert problem_of(damaged.headers, Damage), (at, bit)


def flip(kafka: Kafka, topic: str, partition: int, at: float) -> None:
    """While the broker is down, change one bit of what it stored."""
    (broker,) = kafka.brokers
    broker.stop()
    (segment,) = (kafka.folder / "data-1" / f"{topic}-{partition}").glob("*.log")
    content = bytearray(segment.read_bytes())
    content[int(len(content) * at)] ^= 0x10
    segment.write_bytes(content)
    broker.start()


def conversation(name: str, first: int, count: int) -> list[dict[str, Any]]:
    """The next statements of a conversation."""
    return [
        statement(f"u{number}", observe(f"o{number}"), conversation_id=name)
        for number in range(first, first + count)
    ]


def committed(bootstrap: str, topic: str) -> int:
    """Up to where the group has come on the damaged partition."""
    place = TopicPartition(topic, HOME)
    options = KafkaSettings(bootstrap=bootstrap).client_options()
    return asyncio.run(committed_places(options, GROUP, [place])).get(place, 0)


def wait_for(store: Path, event: str) -> list[dict[str, Any]]:
    """What the worker has said under a name, once it has."""
    return wait_until(lambda: said_by(store, event), told=lambda: event)


def wait_until_folded(bootstrap: str, name: str, count: int) -> None:
    """Until the log has so many events of the conversation."""
    key = f"acme/{name}".encode()
    wait_until(lambda: sum(each.key == key for each in read(bootstrap, OPERATIONS)) >= count)


def test_a_damaged_log_stops_its_partition_and_says_so(
    start_kafka: StartKafka, tmp_path: Path
) -> None:
    """A worker that is beyond goes on; one that must read it does not; other partitions do."""
    kafka = start_kafka()
    bootstrap, one, two = kafka.bootstrap, tmp_path / "one.duckdb", tmp_path / "two.duckdb"
    make_topics(bootstrap)
    say(bootstrap, conversation("c1", 0, 20))
    work_through(bootstrap, one)
    say(bootstrap, conversation("c1", 20, 20))
    work_through(bootstrap, one)
    flip(kafka, OPERATIONS, HOME, at=0.3)
    say(bootstrap, conversation("c1", 40, 1))
    work_through(bootstrap, one)
    reached = committed(bootstrap, UTTERANCES)
    assert reached == 41
    say(bootstrap, [*conversation("c1", 41, 3), *conversation(AWAY, 0, 3)])
    with running_worker(bootstrap, two) as worker:
        (stopped,) = wait_for(two, "partition_stopped")
        assert stopped["partition"] == HOME
        expected = rf"{OPERATIONS}/{HOME}: what is stored from offset [0-9]+ on is damaged"
        assert_matches(str(stopped["reason"]), expected)
        wait_until_folded(bootstrap, AWAY, 3)
        assert stop(worker) == 0
    assert committed(bootstrap, UTTERANCES) == reached
    for command in (
        ("archive", "--db", str(tmp_path / "archive.duckdb"), "--until-end"),
        ("tail", OPERATIONS, "--from-beginning"),
    ):
        ran = standfast(*command, "--bootstrap", bootstrap)
        assert ran.returncode == 2
        (line,) = ran.stderr.decode().splitlines()
        assert_matches(line, expected)


def assert_matches(text: str, pattern: str) -> None:
    """The pattern is somewhere in the text."""
    assert re.search(pattern, text), text


def test_damaged_utterances_are_no_dead_letters(start_kafka: StartKafka, tmp_path: Path) -> None:
    """Nobody sent those bytes: their partition waits in front of them, the others go on."""
    kafka = start_kafka()
    bootstrap, store = kafka.bootstrap, tmp_path / "worker.duckdb"
    make_topics(bootstrap)
    for first in (0, 10, 20):
        say(bootstrap, conversation("c1", first, 10))
    say(bootstrap, conversation(AWAY, 0, 3))
    flip(kafka, UTTERANCES, HOME, at=0.5)
    with running_worker(bootstrap, store) as worker:
        (stopped,) = wait_for(store, "partition_stopped")
        assert_matches(
            str(stopped["reason"]), f"{UTTERANCES}/{HOME}: what is stored from offset 10"
        )
        wait_until_folded(bootstrap, AWAY, 3)
        assert stop(worker) == 0
    assert committed(bootstrap, UTTERANCES) <= 10
    assert read(bootstrap, DEAD_LETTERS) == []
