"""The worker on Apache Kafka: what it makes of its input, whatever happens to it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import orjson
from aiokafka import AIOKafkaProducer

from processor.app.messages import OPERATIONS
from processor.app.partitions import partition_of
from schemas.ids import conversation_key
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import (
    PARTITIONS,
    emitted,
    expected,
    make_topics,
    places,
    read,
    running_worker,
    say,
    say_bytes,
    stop,
    wait_until_done,
    work_through,
)
from tests.strategies_streams import seeded_stream

CONVERSATIONS = [(f"tenant-{n % 5}", f"c{n % 3}") for n in range(15)]


def utterances(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """A stream over several tenants whose conversations have the same names."""
    return [dict(each) for each in seeded_stream(seed, count, CONVERSATIONS)]


def assert_as_in_one_process(kafka: Kafka, said: list[dict[str, Any]], store: Path) -> None:
    """The log of the store, and all that was emitted, are those of a run without a broker."""
    run = expected(said, store.parent)
    assert places(store) == run.log
    assert emitted(kafka.bootstrap) == run.derived


def test_it_says_what_a_run_in_one_process_says(empty_kafka: Kafka, tmp_path: Path) -> None:
    """The same digests, and the same derived events under the same ids, each exactly as it is."""
    said = utterances(400)
    make_topics(empty_kafka.bootstrap)
    say(empty_kafka.bootstrap, said)
    store = tmp_path / "worker.duckdb"
    work_through(empty_kafka.bootstrap, store)
    assert_as_in_one_process(empty_kafka, said, store)
    written = map(orjson.loads, store.with_suffix(".log").read_bytes().splitlines())
    lines = [each for each in written if each["event"] == "turn"]
    assert len(lines) == len(places(store))
    assert all(each["milliseconds"] > 0 for each in lines)


def test_kills_lose_nothing_and_apply_nothing_twice(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Killed -9 in the middle of it several times, sometimes with its store gone as well."""
    said = utterances(900, seed=2)
    make_topics(empty_kafka.bootstrap)
    for kill in range(4):
        say(empty_kafka.bootstrap, said[kill * 225 : (kill + 1) * 225])
        store = tmp_path / f"worker-{kill // 2}.duckdb"
        with running_worker(empty_kafka.bootstrap, store) as worker:
            deadline = time.monotonic() + 60
            before = len(read(empty_kafka.bootstrap, OPERATIONS))
            while len(read(empty_kafka.bootstrap, OPERATIONS)) < before + 20:
                assert time.monotonic() < deadline
                assert worker.poll() is None
            worker.kill()
    store = tmp_path / "last.duckdb"
    work_through(empty_kafka.bootstrap, store)
    assert_as_in_one_process(empty_kafka, said, store)


def test_a_worker_that_is_asked_to_stop_finishes_what_it_has_in_hand(
    empty_kafka: Kafka, tmp_path: Path
) -> None:
    """In the middle of its work it ends with status 0, and the next one goes on from there."""
    said = utterances(900, seed=6)
    make_topics(empty_kafka.bootstrap)
    store = tmp_path / "worker.duckdb"
    with running_worker(empty_kafka.bootstrap, store) as worker:
        say(empty_kafka.bootstrap, said)
        assert stop(worker) == 0
    work_through(empty_kafka.bootstrap, store)
    assert_as_in_one_process(empty_kafka, said, store)


def test_two_workers_share_the_work(empty_kafka: Kafka, tmp_path: Path) -> None:
    """One joins while the other works, and one leaves again: what they say together is the same."""
    said = utterances(900, seed=3)
    make_topics(empty_kafka.bootstrap)
    say(empty_kafka.bootstrap, said[:300])
    one, other = tmp_path / "one.duckdb", tmp_path / "other.duckdb"
    with running_worker(empty_kafka.bootstrap, one) as first:
        wait_until_done(empty_kafka.bootstrap)
        with running_worker(empty_kafka.bootstrap, other) as second:
            say(empty_kafka.bootstrap, said[300:600])
            wait_until_done(empty_kafka.bootstrap)
            assert stop(second) == 0
        say(empty_kafka.bootstrap, said[600:])
        wait_until_done(empty_kafka.bootstrap)
        assert stop(first) == 0
    assert_as_in_one_process(empty_kafka, said, one)


def test_what_cannot_be_handled_is_a_dead_letter(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Bytes, keys and partitions that are wrong are kept as they came; work goes on."""
    make_topics(empty_kafka.bootstrap)
    good = utterances(40, seed=4)
    line = orjson.dumps(good[0])
    key = conversation_key(good[0]["tenant_id"], good[0]["conversation_id"]).encode()
    say_bytes(
        empty_kafka.bootstrap,
        (b"k", b"\xff\xfe not json", 0),
        (b"k", None, 1),
        (b"other/key", line, 2),
        (b"default/c", b'{"utterance_id": 7}', 3),
        (None, line, 0),
        (b"\xff/\xff", line, 1),
        (key, line, (partition_of(key, PARTITIONS) + 1) % PARTITIONS),
    )
    say(empty_kafka.bootstrap, good)
    store = tmp_path / "worker.duckdb"
    work_through(empty_kafka.bootstrap, store)
    letters = read(empty_kafka.bootstrap, "dead-letters")
    classes = sorted(dict(each.headers)["class"].decode() for each in letters)
    run = expected(good, tmp_path)
    bad = ["invalid"] * 3 + ["wrong_key"] * 3 + ["wrong_partition"]
    assert classes == sorted([*bad, *run.letters])
    assert b"\xff\xfe not json" in [each.value for each in letters]
    assert places(store) == run.log


def test_bytes_in_the_log_that_are_no_event_are_passed_over(
    empty_kafka: Kafka, tmp_path: Path
) -> None:
    """Every reader skips them the same way, so they change nothing."""

    async def spoil() -> None:
        async with AIOKafkaProducer(bootstrap_servers=empty_kafka.bootstrap) as producer:
            for partition in range(4):
                for value in (b"\x00garbage", None, b'{"type": "standfast.setup.v1"}'):
                    await producer.send_and_wait(
                        OPERATIONS, value=value, key=b"a/b", partition=partition
                    )

    said = utterances(100, seed=5)
    make_topics(empty_kafka.bootstrap)
    asyncio.run(spoil())
    say(empty_kafka.bootstrap, said)
    store = tmp_path / "worker.duckdb"
    work_through(empty_kafka.bootstrap, store)
    assert places(store) == expected(said, tmp_path).log
