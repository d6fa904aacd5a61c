"""Recovery on Apache Kafka: how much of a log is folded again, and that it comes out the same."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest
from aiokafka import AIOKafkaProducer

from processor.app.messages import SNAPSHOTS
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
from tests.kafka.fixtures import delete_topics
from tests.kafka.s3_server import BUCKET, S3Server
from tests.pipeline import workers
from tests.pipeline.workers import (
    make_topics,
    read,
    running_worker,
    say,
    stop,
    wait_until_done,
)
from tests.waiting import wait_until

SAID_AFTER = 10
"""Conversations that go on after each recovery."""


class Site:
    """A log, what should come of it, and workers that start, go on with it, and stop."""

    def __init__(self, kafka: Kafka, folder: Path, turns: int, **settings: str) -> None:
        self.bootstrap, self.folder = kafka.bootstrap, folder
        self.settings = {"STANDFAST_WORKER_CHECKPOINT_SECONDS": "2", **settings}
        self.ids = conversations_of_partition(turns // 40)
        self.reference = Reference(self.ids)
        make_topics(self.bootstrap)
        order = (self.ids[number % len(self.ids)] for number in range(turns))
        assert write_log(self.bootstrap, (self.reference.say(ids)[1] for ids in order)) == turns

    def store(self, name: str) -> Path:
        """The file of a worker."""
        return self.folder / f"{name}.duckdb"

    def work(self, name: str) -> dict[str, object]:
        """A worker recovers, works on, and stops: all is as it should be; what it recovered."""
        store = self.store(name)
        log = store.with_suffix(".log")
        published = len(said_by(store, "checkpoint_published")) if log.exists() else 0
        with running_worker(self.bootstrap, store, **self.settings) as worker:
            said = [self.reference.say(ids)[0] for ids in self.ids[:SAID_AFTER]]
            say(self.bootstrap, said)
            wait_until_done(self.bootstrap)
            wait_until(
                lambda: len(said_by(store, "checkpoint_published")) > published,
                workers.START_SECONDS_MAX,
            )
            assert stop(worker) == 0
        assert digests_in(store, self.ids) == self.reference.digests()
        return recovered(store)


def assert_small(found: dict[str, object], source: str, turns: int) -> None:
    """At most one event in a hundred was folded again."""
    assert found["source"] == source
    assert int(str(found["folded"])) <= turns // 100


def assert_recovers(site: Site, turns: int) -> None:
    """From the log, from what is here, from what is shared, and from the log again."""
    first = site.work("first")
    assert (first["source"], first["folded"]) == ("log", turns)
    assert_small(site.work("first"), "local", turns)
    assert_small(site.work("second"), "shared", turns)
    assert_small(site.work("second"), "local", turns)
    assert_small(site.work("third"), "shared", turns)


@pytest.mark.parametrize(
    "turns", [20_000, pytest.param(200_000, marks=pytest.mark.thorough)], ids=str
)
def test_hardly_anything_is_folded_again(
    empty_kafka: Kafka, tmp_path: Path, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker with its own store, and one on an empty disk, fold what came since; no more."""
    monkeypatch.setattr(workers, "START_SECONDS_MAX", 60 + turns / 200)
    assert_recovers(Site(empty_kafka, tmp_path, turns), turns)


def test_a_folder_does_as_well(empty_kafka: Kafka, tmp_path: Path) -> None:
    """The same, where workers share a folder instead of a topic."""
    folder = tmp_path / "shared"
    site = Site(empty_kafka, tmp_path, 4_000, STANDFAST_WORKER_CHECKPOINT_FOLDER=str(folder))
    assert_recovers(site, 4_000)
    assert read(site.bootstrap, SNAPSHOTS) == []
    shutil.rmtree(folder)
    assert site.work("without")["source"] == "log"


def test_a_bucket_does_as_well(empty_kafka: Kafka, tmp_path: Path, s3: S3Server) -> None:
    """The same, where workers share a bucket; without its objects the log is folded."""
    bucket = f"s3://{BUCKET}/{tmp_path.name}"
    given = {"STANDFAST_WORKER_CHECKPOINT_BUCKET": bucket, **s3.environment}
    site = Site(empty_kafka, tmp_path, 4_000, **given)
    assert_recovers(site, 4_000)
    assert read(site.bootstrap, SNAPSHOTS) == []
    shutil.rmtree(s3.folder / tmp_path.name)
    assert site.work("without")["source"] == "log"


def test_a_bucket_that_refuses_everybody_costs_a_recovery_and_nothing_else(
    empty_kafka: Kafka, tmp_path: Path, s3: S3Server
) -> None:
    """With a wrong key every turn is folded all the same; the log says why nothing is shared."""
    bucket = f"s3://{BUCKET}/{tmp_path.name}"
    refused = {**s3.environment, "AWS_SECRET_ACCESS_KEY": "wrong"}
    site = Site(empty_kafka, tmp_path, 1_200, STANDFAST_WORKER_CHECKPOINT_BUCKET=bucket, **refused)
    store = site.store("refused")
    with running_worker(site.bootstrap, store, **site.settings) as worker:
        say(site.bootstrap, [site.reference.say(ids)[0] for ids in site.ids[:SAID_AFTER]])
        wait_until_done(site.bootstrap)
        told = wait_until(lambda: said_by(store, "checkpoint_not_published"))
        assert stop(worker) == 0
    assert digests_in(store, site.ids) == site.reference.digests()
    assert str(told[0]["reason"]).startswith(bucket)
    assert recovered(store)["source"] == "log"
    (not_used,) = said_by(store, "checkpoint_not_used")
    assert str(not_used["reason"]).startswith(bucket)


def flip(stored: bytes, at: float = 0.7) -> bytes:
    """The same bytes but for one bit."""
    place = int(len(stored) * at)
    return stored[:place] + bytes([stored[place] ^ 1]) + stored[place + 1 :]


def publish(bootstrap: str, records: list[tuple[bytes, bytes | None]]) -> None:
    """Put records on the topic of checkpoints as somebody else might."""

    async def send() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, max_request_size=16 * 1_048_576
        ) as producer:
            for key, value in records:
                await producer.send_and_wait(SNAPSHOTS, value=value, key=key, partition=PARTITION)

    asyncio.run(send())


def test_damaged_checkpoints_are_done_without(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Flipped bits, older records and deletions change no digest, and the next set is whole."""
    site = Site(empty_kafka, tmp_path, 1_200)
    site.work("first")
    early = {each.key: each.value for each in read(site.bootstrap, SNAPSHOTS)}
    site.work("first")
    shared = {each.key: each.value for each in read(site.bootstrap, SNAPSHOTS)}
    conversation = f"{'/'.join(site.ids[0])}".encode()
    assert early[conversation] != shared[conversation]
    assert site.work("sound")["source"] == "shared"
    damages: dict[str, list[tuple[bytes, bytes | None]]] = {
        "a flipped bit": [(conversation, flip(shared[conversation]))],
        "bytes of something else": [(conversation, b"{}")],
        "an older record": [(conversation, early[conversation])],
        "another's record": [(conversation, shared[f"{'/'.join(site.ids[1])}".encode()])],
        "a deletion": [(conversation, None)],
        "no marker": [(MARKER_KEY, None)],
    }
    for number, (damage, records) in enumerate(damages.items()):
        publish(site.bootstrap, records)
        assert site.work(f"damage-{number}")["source"] == "log", damage
        assert site.work(f"mended-{number}")["source"] == "shared", damage


def test_checkpoints_of_another_log_are_done_without(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Where the topics were made anew, old checkpoints put back are seen through by their hash."""
    site = Site(empty_kafka, tmp_path, 1_200)
    site.work("first")
    old = [(each.key, each.value) for each in read(site.bootstrap, SNAPSHOTS)]
    asyncio.run(delete_topics(site.bootstrap))
    (tmp_path / "new").mkdir()
    fresh = Site(empty_kafka, tmp_path / "new", 2_000)
    publish(fresh.bootstrap, old)
    shutil.copy(site.store("first"), fresh.store("first"))
    assert fresh.work("first")["source"] == "log"
    assert fresh.work("second")["source"] == "shared"


def alter_snapshots(store: Path) -> None:
    """Flip a bit in every snapshot, in a way that DuckDB does not see."""
    with duckdb.connect(str(store)) as connection:
        rows = connection.execute("SELECT rowid, conversation FROM snapshots").fetchall()
        for row, conversation in rows:
            connection.execute(
                "UPDATE snapshots SET conversation = ? WHERE rowid = ?", [flip(conversation), row]
            )


def alter_position(store: Path) -> None:
    """A place that the log does not have."""
    with duckdb.connect(str(store)) as connection:
        connection.execute("UPDATE positions SET next_offset = next_offset - 7")


def drop_snapshots(store: Path) -> None:
    """All of them, so that conversations are folded from their events."""
    with duckdb.connect(str(store)) as connection:
        connection.execute("DELETE FROM snapshots")


def flip_file(store: Path) -> None:
    """A bit in each block of the file."""
    content = bytearray(store.read_bytes())
    for place in range(20_000, len(content), 65_536):
        content[place] ^= 1
    store.write_bytes(content)


def blank_file(store: Path) -> None:
    """As some file systems leave it when the power fails."""
    store.write_bytes(bytes(store.stat().st_size))


@pytest.mark.parametrize(
    "damage", [alter_snapshots, alter_position, drop_snapshots, flip_file, blank_file]
)
def test_a_damaged_store_is_set_aside(
    empty_kafka: Kafka, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """At the latest the second start goes on without it, and all comes out the same."""
    site = Site(empty_kafka, tmp_path, 2_000)
    site.work("first")
    store = site.store("first")
    damage(store)
    said = [site.reference.say(ids)[0] for ids in site.ids]
    say(site.bootstrap, said)
    with running_worker(site.bootstrap, store) as worker, suppress(subprocess.TimeoutExpired):
        assert worker.wait(8) == 1
    site.work("first")
    aside = said_by(store, "store_set_aside")
    assert len(aside) == (damage not in (alter_position, drop_snapshots))
