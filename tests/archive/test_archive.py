"""`standfast archive` on Apache Kafka: every message once, whatever happens on either side."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from schemas.topics import TOPICS
from tests.archive.archives import (
    SECONDS_MAX,
    archive,
    ask,
    delete_before,
    following,
    in_archive,
    make_topics,
    on_brokers,
    send,
    size,
    wait_until_it_follows,
)
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import delete_topics

PARTITIONS = 3
KEYS = (b"acme/c1", b"acme/c2", b"default/a.b:c@d", b"\xff/\xfe", b"no key of ours", b"", None)
VALUES = (None, b"", b"\x00\xff\x1b[2J", b"{}", orjson.dumps({"text": "\x00'; DROP TABLE copied"}))
HEADERS = ((), (("a", b"1"), ("a", None), ("", b"\xff")), (("\x00'\x1b[2J\n", b""),))
COPIED = [topic for topic in TOPICS if not topic.per_tenant and topic.name != "keys"]
TOPIC_NAMES = (*(topic.name for topic in COPIED), "ungrounded-alerts.acme")


def hostile(count: int, seed: int) -> list[tuple[str, dict[str, Any]]]:
    """Records that nobody should send: bytes, tombstones, keys and headers of all kinds."""
    dice = random.Random(seed)
    records: list[tuple[str, dict[str, Any]]] = []
    for _ in range(count):
        value = dice.choice((*VALUES, dice.randbytes(dice.randrange(2_000))))
        topic = dice.choice(TOPIC_NAMES)
        key = dice.choice(KEYS[:-1] if topic == "snapshots" or value is None else KEYS)
        headers = [*dice.choice(HEADERS)]
        partition = dice.randrange(PARTITIONS)
        fields = {"key": key, "value": value, "partition": partition, "headers": headers}
        records.append((topic, fields))
    return records


@pytest.fixture
def bootstrap(empty_kafka: Kafka) -> str:
    """The shared broker with our topics, those of one tenant's alerts among them, all empty."""
    make_topics(empty_kafka.bootstrap, PARTITIONS, "acme")
    return empty_kafka.bootstrap


def test_every_message_of_every_topic_is_kept_as_it_is(bootstrap: str, tmp_path: Path) -> None:
    """Key, value, headers and time of hostile messages; again it copies what is new only."""
    path = tmp_path / "archive.duckdb"
    send(bootstrap, hostile(2_000, seed=1))
    ran = archive(bootstrap, path, "--json")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert orjson.loads(ran.stdout) == {"db": str(path), "copied": 2_000, "gaps": []}
    assert in_archive(path) == on_brokers(bootstrap)
    send(bootstrap, hostile(100, seed=2))
    assert orjson.loads(archive(bootstrap, path, "--json").stdout)["copied"] == 100
    assert orjson.loads(archive(bootstrap, path, "--json").stdout)["copied"] == 0
    assert in_archive(path) == on_brokers(bootstrap)


def test_rows_say_whose_they_are_if_their_key_does(bootstrap: str, tmp_path: Path) -> None:
    """Tenant and conversation are columns, and null where the key is no conversation's."""
    path = tmp_path / "archive.duckdb"
    send(bootstrap, [("utterances", {"key": key, "value": b"x"}) for key in KEYS])
    assert archive(bootstrap, path).returncode == 0
    rows = ask(path, "SELECT key, tenant_id, conversation_id, timestamp FROM messages")
    assert {row[0]: row[1:3] for row in rows} == {
        **dict.fromkeys(KEYS, (None, None)),
        b"acme/c1": ("acme", "c1"),
        b"acme/c2": ("acme", "c2"),
        b"default/a.b:c@d": ("default", "a.b:c@d"),
    }
    assert all(abs(row[3].timestamp() - time.time()) < 600 for row in rows)


def test_the_largest_messages_fit(bootstrap: str, tmp_path: Path) -> None:
    """Checkpoints of sixteen megabytes are copied within the memory that DuckDB is given."""
    path = tmp_path / "archive.duckdb"
    value = random.Random(3).randbytes(16 * 1_048_576 - 1_000)
    records = [("snapshots", {"key": b"a/%d" % n, "value": value}) for n in range(4)]
    send(bootstrap, records)
    ran = archive(bootstrap, path)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert [row[5] == value for row in in_archive(path)] == [True] * 4


def test_kills_lose_no_row_and_double_none(bootstrap: str, tmp_path: Path) -> None:
    """Killed -9 in the middle of it many times, it has in the end what the topics have."""
    path = tmp_path / "archive.duckdb"
    count, dice = 30_000, random.Random(4)
    send(bootstrap, hostile(count, seed=10))
    there: list[int] = []
    for _ in range(8):
        before, step = size(path), dice.randrange(1_500_000)
        with following(bootstrap, path) as process:
            started_before = time.monotonic() + SECONDS_MAX
            while not path.exists():
                assert time.monotonic() < started_before
                time.sleep(0.01)
            deadline = time.monotonic() + 20
            while abs(size(path) - before) <= step and time.monotonic() < deadline:
                time.sleep(0.01)
            process.kill()
        there.append(len(in_archive(path)))
    ran = archive(bootstrap, path)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert len({rows for rows in there if 0 < rows < count}) >= 3, there
    assert in_archive(path) == on_brokers(bootstrap)


def test_it_follows_until_it_is_asked_to_stop(bootstrap: str, tmp_path: Path) -> None:
    """What comes while it runs is kept when SIGTERM has ended it, with status 0."""
    path = tmp_path / "archive.duckdb"
    with following(bootstrap, path) as process:
        for seed in range(5):
            send(bootstrap, hostile(200, seed))
            wait_until_it_follows(bootstrap, path, process)
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=SECONDS_MAX)
    assert (process.returncode, stderr) == (0, b"")
    kept, sent = in_archive(path), on_brokers(bootstrap)
    assert stdout == f"{len(kept):,} messages copied\n".encode()
    assert len(kept) >= 400
    assert {*kept} <= {*sent}
    assert archive(bootstrap, path).returncode == 0
    assert in_archive(path) == sent


def test_a_second_archive_on_the_same_file_is_refused(bootstrap: str, tmp_path: Path) -> None:
    """Of two that follow into one file, one says in one line that the other has it, and ends."""
    path = tmp_path / "archive.duckdb"
    send(bootstrap, hostile(10, seed=1))
    with following(bootstrap, path) as first, following(bootstrap, path) as second:
        refused, other = _by_end(first, second)
        stdout, stderr = refused.communicate(timeout=SECONDS_MAX)
        assert other.poll() is None
        other.kill()
    assert (refused.returncode, stdout, stderr.count(b"\n")) == (2, b"", 1)
    assert str(path).encode() in stderr
    assert archive(bootstrap, path).returncode == 0
    assert in_archive(path) == on_brokers(bootstrap)


def _by_end(*processes: subprocess.Popen[bytes]) -> list[subprocess.Popen[bytes]]:
    """The same processes, when the first of them has ended: that one first."""
    deadline = time.monotonic() + SECONDS_MAX
    while all(process.poll() is None for process in processes):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return sorted(processes, key=lambda process: process.poll() is None)


@pytest.mark.parametrize("count", [5, 40])
def test_a_topic_that_was_created_anew_is_refused(
    bootstrap: str, tmp_path: Path, count: int
) -> None:
    """Whether its new log is shorter or longer, none of it comes beside what the old one had."""
    path = tmp_path / "archive.duckdb"
    records = [("operations", {"value": b"%d" % n, "partition": 1}) for n in range(20)]
    send(bootstrap, records)
    assert archive(bootstrap, path).returncode == 0
    before = in_archive(path)
    asyncio.run(delete_topics(bootstrap))
    make_topics(bootstrap, PARTITIONS)
    send(bootstrap, (records * 2)[:count])
    ran = archive(bootstrap, path)
    assert ran.returncode == 2
    assert ran.stderr.count(b"\n") == 1
    assert b"operations/1 was created anew" in ran.stderr
    assert in_archive(path) == before
    assert archive(bootstrap, tmp_path / "another.duckdb").returncode == 0


def test_what_the_brokers_deleted_is_a_gap(bootstrap: str, tmp_path: Path) -> None:
    """Lost before the first copy or between two, it is told on standard error and noted."""
    path = tmp_path / "archive.duckdb"
    records = [("utterances", {"value": b"%d" % n, "partition": 2}) for n in range(30)]
    send(bootstrap, records[:10])
    delete_before(bootstrap, "utterances", 2, 4)
    first = archive(bootstrap, path)
    assert first.returncode == 0
    assert b"utterances/2: the brokers deleted what was at offsets 0 to 3" in first.stderr
    send(bootstrap, records[10:])
    delete_before(bootstrap, "utterances", 2, 25)
    second = archive(bootstrap, path)
    assert second.returncode == 0
    assert b"offsets 10 to 24 before it was copied" in second.stderr
    gaps = [("utterances", 2, 0, 4, "deleted"), ("utterances", 2, 10, 25, "deleted")]
    assert ask(path, "SELECT * FROM gaps ORDER BY first_offset") == gaps
    assert [row[2] for row in in_archive(path)] == [*range(4, 10), *range(25, 30)]
    assert archive(bootstrap, path).stderr == b""


def test_what_is_no_archive_is_not_written_to(bootstrap: str, tmp_path: Path) -> None:
    """Without topics, with a file that is something else, or without a file, it is one line."""
    other = tmp_path / "other.duckdb"
    other.write_bytes(b"something else")
    ran = archive(bootstrap, other)
    assert (ran.returncode, ran.stderr.count(b"\n")) == (2, 1)
    asyncio.run(delete_topics(bootstrap))
    ran = archive(bootstrap, tmp_path / "archive.duckdb")
    assert (ran.returncode, ran.stderr.count(b"\n")) == (2, 1)
    assert b"standfast topics create" in ran.stderr
