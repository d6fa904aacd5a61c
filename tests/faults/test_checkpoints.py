"""Shared checkpoints while workers are killed, and where a set cannot be completed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from processor.app import sender as sender_module
from processor.app.checkpoints import Recovery, read_shared_set
from processor.app.local_store import LocalStore
from processor.app.messages import OPERATIONS, SNAPSHOTS
from processor.app.progress import FoldProgress
from processor.app.publisher import Publisher
from processor.app.reduce_agent import PartitionStopped, ReduceAgent
from processor.app.sender import Sender
from processor.app.shared_place import SnapshotsTopic
from schemas.checkpoint import MARKER_KEY
from tests.faults.logs import (
    PARTITION,
    Reference,
    conversations_of_partition,
    digests_in,
    recovered,
    said_by,
    write_log,
)
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import (
    GROUP,
    emitted,
    make_topics,
    read,
    running_worker,
    say,
    stop,
    wait_until_done,
)

TURNS = 1_500
CONVERSATIONS = 30
OFTEN = {"STANDFAST_WORKER_CHECKPOINT_SECONDS": "0.3"}


def begin(kafka: Kafka) -> Reference:
    """A log that the group has committed, and what should come of it."""
    reference = Reference(conversations_of_partition(CONVERSATIONS))
    ids = list(reference.conversations)
    make_topics(kafka.bootstrap)
    write_log(kafka.bootstrap, (reference.say(ids[n % len(ids)])[1] for n in range(TURNS)))
    return reference


def test_kills_of_workers_on_empty_disks_lose_nothing(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Whatever was published when they were killed, all is emitted and every digest is right."""
    reference = begin(empty_kafka)
    ids = list(reference.conversations)
    bootstrap = empty_kafka.bootstrap
    sources = []
    for kill in range(5):
        store = tmp_path / f"worker-{kill}.duckdb"
        with running_worker(bootstrap, store, **OFTEN) as worker:
            before = len(read(bootstrap, OPERATIONS))
            say(bootstrap, [reference.say(ids[n % 30], emit=True)[0] for n in range(120)])
            deadline = time.monotonic() + 60
            while len(read(bootstrap, OPERATIONS)) < before + 20 * kill:
                assert time.monotonic() < deadline
            while kill == 1 and not said_by(store, "checkpoint_published"):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            time.sleep(0.2 * kill)
            worker.kill()
        sources.append(recovered(store)["source"])
    last = tmp_path / "last.duckdb"
    with running_worker(bootstrap, last, **OFTEN) as worker:
        wait_until_done(bootstrap)
        assert stop(worker) == 0
    assert digests_in(last, ids) == reference.digests()
    assert emitted(bootstrap) == reference.emitted
    assert "shared" in sources


def test_a_set_that_cannot_be_completed_has_no_marker(
    empty_kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One conversation is too large for the topic: nothing is said of the others until it fits."""
    begin(empty_kafka)
    connection = {"bootstrap_servers": empty_kafka.bootstrap}

    async def publish(size_max: int) -> str | None:
        monkeypatch.setattr(sender_module, "REQUEST_BYTES_MAX", size_max)
        async with (
            LocalStore(tmp_path / f"{size_max}.duckdb", 1_000_000) as store,
            Sender(connection) as sender,
        ):
            place = SnapshotsTopic(connection, sender)
            progress = FoldProgress()
            reduce_agent = ReduceAgent(store, progress)
            recovery = Recovery(connection, GROUP, store, place, reduce_agent, progress)
            stopped: list[PartitionStopped] = []
            assert await recovery.run([PARTITION], stopped.append) == {PARTITION: TURNS}
            assert not stopped
            publisher = Publisher(connection, GROUP, store, place)
            publisher.begin([PARTITION])
            await publisher.publish()
            await publisher.publish()
            return (await read_shared_set(place, PARTITION)).objection()

    assert asyncio.run(publish(3_000)) == "no marker"
    assert MARKER_KEY not in {each.key for each in read(empty_kafka.bootstrap, SNAPSHOTS)}
    assert asyncio.run(publish(1_000_000)) is None
    markers = [each for each in read(empty_kafka.bootstrap, SNAPSHOTS) if each.key == MARKER_KEY]
    assert len(markers) == 1
