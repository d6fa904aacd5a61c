"""`standfast archive --parquet` on Apache Kafka: segments that are read while they are written."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import orjson
import pytest

from replay.segments_found import read_manifest, segment_folder
from schemas.ids import conversation_key
from schemas.wire import canonical_bytes
from tests.archive.archives import (
    SECONDS_MAX,
    archive,
    following,
    in_archive,
    make_topics,
    on_brokers,
    send,
)
from tests.archive.test_archive import PARTITIONS, hostile
from tests.audit.places import KINDS, empty_place, is_begun
from tests.benchmarks.conversations import log_of
from tests.kafka.cluster import Kafka
from tests.replay.test_store import standfast
from tests.waiting import wait_until


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive that is not there yet, of either kind."""
    return empty_place(request.param, request, tmp_path, monkeypatch)


def test_kills_lose_no_row_and_double_none(empty_kafka: Kafka, folder: Path) -> None:
    """Killed -9 many times, also while it publishes, it has in the end what the topics have."""
    bootstrap = empty_kafka.bootstrap
    unfinished = segment_folder(folder) / ".writing"
    make_topics(bootstrap, PARTITIONS, "acme")
    dice = random.Random(5)
    sent, kills = 0, 0
    for round_ in range(6):
        send(bootstrap, hostile(3_000, seed=20 + round_))
        sent += 3_000
        with following(bootstrap, folder) as process:
            wait_until(lambda: unfinished.is_dir() and any(unfinished.iterdir()), SECONDS_MAX)
            time.sleep(dice.random() * 0.3)
            process.kill()
            kills += 1
        if is_begun(folder):
            assert len(in_archive(folder)) <= sent
    ran = archive(bootstrap, folder, "--json")
    assert (ran.returncode, ran.stderr, kills) == (0, b"", 6)
    assert in_archive(folder) == on_brokers(bootstrap)


def test_it_is_read_while_it_is_written(empty_kafka: Kafka, folder: Path) -> None:
    """Queries, the audit and the list of gaps are answered while the copier follows."""
    bootstrap = empty_kafka.bootstrap
    make_topics(bootstrap, 1)
    key = conversation_key("default", "bench").encode()
    log = [
        ("operations", {"key": key, "value": canonical_bytes(event), "partition": 0})
        for event in log_of(40)[0]
    ]
    send(bootstrap, log[:30])
    with following(bootstrap, folder) as process:
        wait_until(lambda: is_begun(folder) and read_manifest(folder).segments, SECONDS_MAX)
        asked = ("state", "--db", folder, "--conversation", "bench", "--json")
        told = standfast(*asked)
        assert (told.returncode, orjson.loads(told.stdout)["turn"]) == (0, 30)
        audited = standfast("replay", "audit", "--db", folder, "--json")
        assert (audited.returncode, orjson.loads(audited.stdout)["turns"]) == (0, 30)
        send(bootstrap, log[30:])
        deadline = time.monotonic() + SECONDS_MAX
        while orjson.loads(standfast(*asked).stdout)["turn"] < 40:
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGTERM)
        _, complaint = process.communicate(timeout=SECONDS_MAX)
    assert (process.returncode, complaint) == (0, b"")
    again = archive(bootstrap, folder, "--json")
    assert orjson.loads(again.stdout) == {"db": str(folder), "copied": 0, "gaps": []}
