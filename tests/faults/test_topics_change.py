"""Topics that are not those a worker or its group knew: nothing stalls, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions

from processor.app.messages import OPERATIONS, UTTERANCES
from tests.faults.test_input import utterance, work
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import delete_topics
from tests.kafka.groups import commit_from_outside
from tests.pipeline.workers import (
    GROUP,
    PARTITIONS,
    emitted,
    make_topics,
    places,
    running_worker,
    say,
    wait_until_done,
)

SAID = [utterance(f"u{number}", conversation_id=f"c{number % 7}") for number in range(40)]
SECONDS_MAX = 120.0


def commit(bootstrap: str, offset: int) -> None:
    """Have the group say that it has come to an offset, on every partition."""
    places = [
        TopicPartition(topic, each)
        for topic in (UTTERANCES, OPERATIONS)
        for each in range(PARTITIONS)
    ]
    asyncio.run(
        commit_from_outside(bootstrap, GROUP, places, lambda ends: dict.fromkeys(ends, offset))
    )


def test_a_place_beyond_the_end_is_that_of_another_log(empty_kafka: Kafka, tmp_path: Path) -> None:
    """It is set back to the beginning, and what is there is worked on, all of it."""
    bootstrap = empty_kafka.bootstrap
    make_topics(bootstrap)
    say(bootstrap, SAID[:20])
    commit(bootstrap, 100_000)
    store = tmp_path / "worker.duckdb"
    work(bootstrap, store)
    assert len(places(store)) == 20
    before = emitted(bootstrap)
    commit(bootstrap, 100_000)
    say(bootstrap, SAID[20:])
    work(bootstrap, store)
    assert len(places(store)) == 40
    assert emitted(bootstrap).items() >= before.items()
    log = store.with_suffix(".log").read_text()
    assert log.count('"place_beyond_end"') == 2 * 2 * PARTITIONS


def ended(bootstrap: str, store: Path, change: Callable[[], None]) -> str:
    """What a worker says whose topics change under it; it ends with 1."""
    with running_worker(bootstrap, store) as worker:
        wait_until_done(bootstrap)
        change()
        assert worker.wait(SECONDS_MAX) == 1
    return store.with_suffix(".log").read_text().splitlines()[-1]


def test_topics_that_are_deleted_end_the_worker(empty_kafka: Kafka, tmp_path: Path) -> None:
    """It says so in its last line; started again on new topics, it works on what is there."""
    bootstrap = empty_kafka.bootstrap
    make_topics(bootstrap)
    say(bootstrap, SAID[:20])
    store = tmp_path / "worker.duckdb"
    last = ended(bootstrap, store, lambda: asyncio.run(delete_topics(bootstrap)))
    assert "is gone; see standfast topics check" in last
    make_topics(bootstrap)
    say(bootstrap, SAID[20:])
    work(bootstrap, store)
    assert len(places(store)) == 20


def test_other_partition_counts_end_the_worker(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Keys belong elsewhere then, so it does not go on, and does not start again either."""
    bootstrap = empty_kafka.bootstrap
    make_topics(bootstrap)

    async def add_partitions() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        await admin.create_partitions({UTTERANCES: NewPartitions(PARTITIONS + 1)})
        await admin.close()

    last = ended(bootstrap, tmp_path / "worker.duckdb", lambda: asyncio.run(add_partitions()))
    assert "has 5 partitions, and had 4 when the worker began" in last
