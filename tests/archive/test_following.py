"""An archive that follows the topics while things happen to the brokers and to the topics."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from processor.app import archive as copying
from processor.app.archive import Copier
from processor.app.archive_thread import ArchiveThread
from processor.app.settings import KafkaSettings
from tests.archive.archives import (
    SECONDS_MAX,
    archive,
    ask,
    following,
    in_archive,
    make_topics,
    on_brokers,
    records_deleted_before,
    send,
    wait_until_it_follows,
)
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import StartKafka, delete_topics


def numbers(first: int, count: int, topic: str = "utterances") -> list[tuple[str, dict[str, Any]]]:
    """Messages of one partition."""
    return [(topic, {"value": b"%d" % n, "partition": 0}) for n in range(first, first + count)]


def test_a_broker_that_is_away_is_waited_for(start_kafka: StartKafka, tmp_path: Path) -> None:
    """Killed and started again, it is read on from where it was."""
    kafka, path = start_kafka(), tmp_path / "archive.duckdb"
    make_topics(kafka.bootstrap, 2)
    with following(kafka.bootstrap, path) as process:
        send(kafka.bootstrap, numbers(0, 500))
        wait_until_it_follows(kafka.bootstrap, path, process)
        kafka.brokers[0].kill()
        time.sleep(3)
        assert process.poll() is None
        kafka.brokers[0].start()
        send(kafka.bootstrap, numbers(500, 500))
        wait_until_it_follows(kafka.bootstrap, path, process)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=SECONDS_MAX)
        assert (process.returncode, stderr) == (0, b"")
    assert len(in_archive(path)) >= 1_002
    assert archive(kafka.bootstrap, path).returncode == 0
    assert in_archive(path) == on_brokers(kafka.bootstrap)


def test_a_topic_that_is_created_anew_meanwhile_ends_it(empty_kafka: Kafka, tmp_path: Path) -> None:
    """It refuses what follows, and keeps what it had."""
    bootstrap, path = empty_kafka.bootstrap, tmp_path / "archive.duckdb"
    make_topics(bootstrap, 1)
    with following(bootstrap, path) as process:
        wait_until_it_follows(bootstrap, path, process)
        asyncio.run(delete_topics(bootstrap))
        make_topics(bootstrap, 1)
        send(bootstrap, numbers(1_000, 10))
        _, stderr = process.communicate(timeout=SECONDS_MAX)
        assert (process.returncode, stderr.count(b"\n")) == (2, 1)
    assert b"utterances/0 was created anew" in stderr
    assert {len(row[5] or b"") for row in in_archive(path)} == {1_000_000}


async def _while_following(
    bootstrap: str, path: Path, work: Callable[[Copier], Awaitable[None]]
) -> None:
    """Do something while a copier of this process follows the topics."""
    stopped = asyncio.Event()
    async with asyncio.timeout(SECONDS_MAX), ArchiveThread(path) as thread:
        copier = Copier(KafkaSettings(bootstrap=bootstrap), thread, stopped)
        copying_task = asyncio.create_task(copier.copy(until_end=False))
        await work(copier)
        stopped.set()
        assert await copying_task is False


def test_topics_that_appear_meanwhile_are_followed_too(
    empty_kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alerts of a tenant that asks for them later are copied from then on."""
    monkeypatch.setattr(copying, "LOOK_SECONDS", 0.5)
    bootstrap, path = empty_kafka.bootstrap, tmp_path / "archive.duckdb"
    make_topics(bootstrap, 1)
    send(bootstrap, numbers(0, 10))

    async def add_a_tenant(copier: Copier) -> None:
        while copier.copied < 10:
            await asyncio.sleep(0.1)
        await asyncio.to_thread(make_topics, bootstrap, 1, "acme")
        later = numbers(10, 5, "ungrounded-alerts.acme") + numbers(10, 5)
        await asyncio.to_thread(send, bootstrap, later)
        while copier.copied < 20:
            await asyncio.sleep(0.1)

    asyncio.run(_while_following(bootstrap, path, add_a_tenant))
    assert in_archive(path) == on_brokers(bootstrap)


def test_what_the_brokers_delete_ahead_of_it_is_a_gap(
    empty_kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log's start may overtake it while it follows: it goes on there, and says so."""
    bootstrap, path = empty_kafka.bootstrap, tmp_path / "archive.duckdb"
    make_topics(bootstrap, 1)
    send(bootstrap, numbers(0, 10))
    end_offsets = AIOKafkaConsumer.end_offsets

    async def ends_too_late(reader: Any, places: Any) -> Any:
        ends = await end_offsets(reader, places)
        await records_deleted_before(bootstrap, TopicPartition("utterances", 0), 7)
        return ends

    monkeypatch.setattr(AIOKafkaConsumer, "end_offsets", ends_too_late)

    async def wait(copier: Copier) -> None:
        while copier.copied < 3:
            await asyncio.sleep(0.1)

    asyncio.run(_while_following(bootstrap, path, wait))
    assert [row[2] for row in in_archive(path)] == [7, 8, 9]
    assert ask(path, "SELECT * FROM gaps") == [("utterances", 0, 0, 7, "deleted")]
