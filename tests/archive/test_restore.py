"""`standfast archive restore` on Apache Kafka: the log goes on where the archive left it."""

from __future__ import annotations

import asyncio
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from processor.app.partitions import partition_of
from tests.archive.archives import COMMAND, archive, in_archive, make_topics, on_brokers, send
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import delete_topics
from tests.kafka.software import ROOT
from tests.pipeline.test_worker import utterances
from tests.pipeline.workers import PARTITIONS, emitted, expected, places, read, say, work_through

MORE = PARTITIONS + 3


def restore(bootstrap: str, path: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Restore, in a process of its own."""
    return subprocess.run(
        [*COMMAND, "archive", "restore", "--bootstrap", bootstrap, "--db", str(path), *options],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=120,
    )


def log_of_operations(count: int) -> list[tuple[str, dict[str, Any]]]:
    """Bytes on the log, by key, with headers."""
    keys = [b"acme/c%d" % n for n in range(7)]
    return [
        ("operations", {"key": keys[n % 7], "value": b"%d" % n, "headers": [("n", b"%d" % n)]})
        for n in range(count)
    ]


@pytest.mark.parametrize("partitions", [PARTITIONS, MORE])
def test_a_worker_goes_on_from_a_restored_archive(
    empty_kafka: Kafka, tmp_path: Path, partitions: int
) -> None:
    """Digests, derived events and dead letters are as if nothing was lost, with any partitions."""
    bootstrap, path = empty_kafka.bootstrap, tmp_path / "archive.duckdb"
    said = utterances(300, seed=7)
    make_topics(bootstrap, PARTITIONS)
    say(bootstrap, said[:200])
    send(bootstrap, [("utterances", {"key": b"acme/c", "value": b"\xff", "partition": 0})])
    work_through(bootstrap, tmp_path / "before.duckdb")
    letters = sorted(each.value for each in read(bootstrap, "dead-letters"))
    say(bootstrap, said[200:])
    assert archive(bootstrap, path).returncode == 0
    asyncio.run(delete_topics(bootstrap))
    make_topics(bootstrap, partitions)
    ran = restore(bootstrap, path, "--json")
    assert (ran.returncode, ran.stderr) == (0, b"")
    sent = orjson.loads(ran.stdout)["sent"]
    assert sent["utterances"] == 301 - len(letters)
    store = tmp_path / "after.duckdb"
    work_through(bootstrap, store, partitions)
    run = expected(said, tmp_path)
    assert places(store) == run.log
    assert emitted(bootstrap, partitions) == run.derived
    again = Counter(each.value for each in read(bootstrap, "dead-letters", partitions))
    assert again[b"\xff"] == 1
    assert not Counter(letters) - again


def test_messages_go_back_as_they_were_in_the_order_of_their_conversations(
    empty_kafka: Kafka, tmp_path: Path
) -> None:
    """Value, key and headers, on the partition of the key."""
    bootstrap, path = empty_kafka.bootstrap, tmp_path / "archive.duckdb"
    make_topics(bootstrap, 2)
    send(bootstrap, log_of_operations(500))
    before = on_brokers(bootstrap)
    assert archive(bootstrap, path).returncode == 0
    asyncio.run(delete_topics(bootstrap))
    make_topics(bootstrap, 5)
    assert restore(bootstrap, path).returncode == 0
    after = on_brokers(bootstrap)
    assert len(after) == 500
    for key in {row[4] for row in before}:
        assert key is not None
        assert [row[4:] for row in after if row[4] == key] == [
            row[4:] for row in before if row[4] == key
        ]
        assert {row[1] for row in after if row[4] == key} == {partition_of(key, 5)}


def test_topics_that_are_in_use_are_not_restored_to(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Nor topics that are not there: each is one line, and nothing is sent."""
    bootstrap, path = empty_kafka.bootstrap, tmp_path / "archive.duckdb"
    make_topics(bootstrap, 2)
    send(bootstrap, log_of_operations(10))
    assert archive(bootstrap, path).returncode == 0
    before = on_brokers(bootstrap)
    in_use = restore(bootstrap, path)
    assert (in_use.returncode, in_use.stderr.count(b"\n")) == (2, 1)
    assert b"operations is not empty" in in_use.stderr
    assert on_brokers(bootstrap) == before
    asyncio.run(delete_topics(bootstrap))
    missing = restore(bootstrap, path)
    assert (missing.returncode, missing.stderr.count(b"\n")) == (2, 1)
    assert b"standfast topics create" in missing.stderr


def test_a_log_with_a_hole_is_not_restored(empty_kafka: Kafka, tmp_path: Path) -> None:
    """A conversation cannot be folded beyond an event that is not there."""
    bootstrap, path = empty_kafka.bootstrap, tmp_path / "archive.duckdb"
    make_topics(bootstrap, 1)
    send(bootstrap, log_of_operations(10))
    assert archive(bootstrap, path).returncode == 0
    with duckdb.connect(str(path)) as connection:
        connection.execute("""DELETE FROM messages WHERE "offset" = 4""")
    assert len(in_archive(path)) == 9
    asyncio.run(delete_topics(bootstrap))
    make_topics(bootstrap, 1)
    ran = restore(bootstrap, path)
    assert (ran.returncode, ran.stderr.count(b"\n")) == (2, 1)
    assert b"operations/0 lacks 1 messages" in ran.stderr
    assert on_brokers(bootstrap) == []
    no_archive = restore(bootstrap, tmp_path / "none.duckdb")
    assert (no_archive.returncode, no_archive.stderr.count(b"\n")) == (2, 1)
