"""The log of an archive: folded from what was copied, so that an archive answers like a store."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import orjson

from tests.archive.archives import archive, ask, following, make_topics, send
from tests.cli.test_commands import standfast
from tests.kafka.cluster import Kafka
from tests.pipeline.test_worker import utterances
from tests.pipeline.workers import PARTITIONS, emitted, expected, places, say, work_through


def derived(path: Path) -> dict[str, bytes]:
    """The derived events of a store that have a topic, by id."""
    rows = ask(path, "SELECT event_id, data FROM derived WHERE type != 'standfast.turn.v1'")
    return {event_id: data.encode() for event_id, data in rows}


def test_an_archive_answers_like_the_store_of_a_run(empty_kafka: Kafka, tmp_path: Path) -> None:
    """The same digests and derived events, however often it was killed, and the same answers."""
    bootstrap, path = empty_kafka.bootstrap, tmp_path / "archive.duckdb"
    said = utterances(700, seed=8)
    make_topics(bootstrap, PARTITIONS)
    say(bootstrap, said)
    work_through(bootstrap, tmp_path / "worker.duckdb")
    for _ in range(4):
        with following(bootstrap, path) as process:
            before = path.stat().st_size if path.exists() else 0
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                if path.exists() and path.stat().st_size != before:
                    break
            process.kill()
    ran = archive(bootstrap, path)
    assert (ran.returncode, ran.stderr) == (0, b"")
    run = expected(said, tmp_path)
    assert places(path) == run.log
    assert derived(path) == emitted(bootstrap)
    for tenant, conversation in {(e["tenant_id"], e["conversation_id"]) for e in said[:9]}:
        whose = ("--tenant", tenant, "--conversation", conversation, "--turn", "3", "--json")
        answers = [
            standfast("state", "--db", store, *whose)
            for store in (path, tmp_path / "expected" / "standfast.duckdb")
        ]
        assert answers[0].returncode == 0, answers[0].stderr
        assert answers[0].stdout == answers[1].stdout


def test_what_was_copied_and_never_folded_is_folded_later(
    empty_kafka: Kafka, tmp_path: Path
) -> None:
    """Whatever copying was ahead by, the next archive makes up for."""
    bootstrap, path = empty_kafka.bootstrap, tmp_path / "archive.duckdb"
    said = utterances(200, seed=9)
    make_topics(bootstrap, PARTITIONS)
    say(bootstrap, said)
    work_through(bootstrap, tmp_path / "worker.duckdb")
    assert archive(bootstrap, path).returncode == 0
    with duckdb.connect(str(path)) as connection:
        for table in ("log", "derived", "snapshots", "positions"):
            connection.execute(f"DELETE FROM {table}")
    assert archive(bootstrap, path).returncode == 0
    assert places(path) == expected(said, tmp_path).log


def test_a_log_of_a_newer_version_is_copied_and_not_folded(
    empty_kafka: Kafka, tmp_path: Path
) -> None:
    """It says where it stops; garbage is passed over, and other partitions go on."""
    bootstrap, path = empty_kafka.bootstrap, tmp_path / "archive.duckdb"
    said = utterances(100, seed=10)
    make_topics(bootstrap, PARTITIONS)
    say(bootstrap, said)
    work_through(bootstrap, tmp_path / "worker.duckdb")
    newer = orjson.dumps({"type": "standfast.operations.v99"})
    send(
        bootstrap,
        [
            ("operations", {"key": b"a/b", "value": value, "partition": 2})
            for value in (b"\xff garbage", newer, b"{}")
        ],
    )
    for _ in range(2):
        ran = archive(bootstrap, path)
        assert ran.returncode == 0
        assert ran.stderr.count(b"\n") == 1
        assert b"operations/2 at " in ran.stderr
        assert b"standfast.operations.v99" in ran.stderr
    assert places(path) == expected(said, tmp_path).log
    tail = """SELECT value FROM messages WHERE topic = 'operations' AND partition = 2
              ORDER BY "offset" DESC LIMIT 3"""
    assert [row[0] for row in ask(path, tail)] == [b"{}", newer, b"\xff garbage"]


def test_the_store_of_a_run_becomes_no_archive(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Its log is not what the topics hold, so it is left as it is."""
    make_topics(empty_kafka.bootstrap, 1)
    run = expected(utterances(20, seed=1), tmp_path)
    store = tmp_path / "expected" / "standfast.duckdb"
    ran = archive(empty_kafka.bootstrap, store)
    assert (ran.returncode, ran.stderr.count(b"\n")) == (2, 1)
    assert b"keeps its log there" in ran.stderr
    assert places(store) == run.log
