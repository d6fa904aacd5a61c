"""Moving to another partition count, and going on after all brokers are lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from processor.app.settings import KafkaSettings
from processor.app.topic_reader import our_partitions
from tests.archive.archives import archive
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import StartKafka
from tests.pipeline.test_worker import utterances
from tests.pipeline.workers import (
    PARTITIONS,
    emitted,
    expected,
    make_topics,
    places,
    say,
    work_through,
)
from tests.procedures.runbook import carry_out, commands

OPTIONS = "--replication 1"


def assert_as_in_one_process(bootstrap: str, folder: Path, store: Path, partitions: int) -> None:
    """Digests and derived events of all that was said are those of a run without brokers."""
    run = expected(utterances(300, seed=7), folder)
    assert places(store) == run.log
    assert emitted(bootstrap, partitions) == run.derived


@pytest.mark.parametrize("partitions", [2, PARTITIONS + 3])
def test_another_partition_count(empty_kafka: Kafka, tmp_path: Path, partitions: int) -> None:
    """Command by command; what is said afterwards continues what was said before."""
    bootstrap, said = empty_kafka.bootstrap, utterances(300, seed=7)
    make_topics(bootstrap)
    say(bootstrap, said[:200])
    work_through(bootstrap, tmp_path / "before.duckdb")
    say(bootstrap, said[200:250])  # not worked on when the workers were stopped
    words = {"bootstrap": bootstrap, "FILE": "all.duckdb", "N": partitions, "OPTIONS": OPTIONS}
    for command in commands("Another partition count"):
        carry_out(command, tmp_path, **words)
    there = asyncio.run(our_partitions(KafkaSettings(bootstrap=bootstrap)))
    assert len(there) == partitions * len({place.topic for place in there})
    say(bootstrap, said[250:], partitions)
    store = tmp_path / "after.duckdb"
    work_through(bootstrap, store, partitions)
    assert_as_in_one_process(bootstrap, tmp_path, store, partitions)


def test_after_losing_the_brokers(start_kafka: StartKafka, tmp_path: Path) -> None:
    """The brokers' disks are gone with what came after the last copy, which is said again."""
    said, lost = utterances(300, seed=7), start_kafka()
    make_topics(lost.bootstrap)
    say(lost.bootstrap, said[:200])
    work_through(lost.bootstrap, tmp_path / "before.duckdb")
    assert archive(lost.bootstrap, tmp_path / "all.duckdb").returncode == 0
    say(lost.bootstrap, said[200:250])
    for each in lost.brokers:
        each.kill()
    lost.close()
    bootstrap = start_kafka().bootstrap
    words = {"bootstrap": bootstrap, "FILE": "all.duckdb", "N": PARTITIONS, "OPTIONS": OPTIONS}
    for command in commands("After losing the brokers"):
        carry_out(command, tmp_path, **words)
    say(bootstrap, said[150:])  # nobody is sure what arrived
    store = tmp_path / "after.duckdb"
    work_through(bootstrap, store)
    assert_as_in_one_process(bootstrap, tmp_path, store, PARTITIONS)
