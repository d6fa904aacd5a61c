"""Kills -9 at the places that matter: nothing is lost, and nothing is applied twice."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.faults.oracle import assert_nothing_lost
from tests.faults.script import as_text
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import (
    PARTITIONS,
    SCRIPTED_WORKER,
    make_topics,
    running_worker,
    say,
    start_worker,
    stop,
    wait_until_done,
)
from tests.strategies_streams import seeded_stream

CONVERSATIONS = [(f"tenant-{n % 4}", f"c{n % 3}") for n in range(12)]
QUICK = {"STANDFAST_SCRIPT_SECONDS_MAX": "0.02"}
AGAIN = {**QUICK, "STANDFAST_WORKER_INSTANCE": "one"}  # the next one takes its place at once
DEATH_SECONDS_MAX = 120.0


@pytest.mark.parametrize(
    "fault", ["append:1", "append:37", "emit:1", "emit:25", "recovery:1", "write:1", "write:3"]
)
def test_a_kill_at_a_point_loses_nothing(empty_kafka: Kafka, tmp_path: Path, fault: str) -> None:
    """A worker dies there; the next one, with the same store, makes everything as it must be."""
    bootstrap, store = empty_kafka.bootstrap, tmp_path / "worker.duckdb"
    make_topics(bootstrap)
    said = [dict(each) for each in seeded_stream(7, 240, CONVERSATIONS)]
    say(bootstrap, [as_text(each) if n % 2 else each for n, each in enumerate(said)])
    dying = start_worker(bootstrap, store, SCRIPTED_WORKER, STANDFAST_FAULT=fault, **AGAIN)
    assert dying.wait(DEATH_SECONDS_MAX) == -signal.SIGKILL
    with running_worker(bootstrap, store, SCRIPTED_WORKER, **AGAIN) as worker:
        wait_until_done(bootstrap)
        assert stop(worker) == 0
    assert_nothing_lost(bootstrap, PARTITIONS)


@pytest.mark.parametrize("point", ["recovery", "rebalance"])
def test_a_kill_while_partitions_move_loses_nothing(
    empty_kafka: Kafka, tmp_path: Path, point: str
) -> None:
    """The worker that works dies as another one joins; that one goes on alone."""
    bootstrap = empty_kafka.bootstrap
    make_topics(bootstrap)
    said = [dict(each) for each in seeded_stream(8, 400, CONVERSATIONS)]
    say(bootstrap, said[:200])
    one, two = tmp_path / "one.duckdb", tmp_path / "two.duckdb"
    fault = f"{point}:2"  # the first time is when it starts
    with running_worker(bootstrap, one, SCRIPTED_WORKER, STANDFAST_FAULT=fault, **QUICK) as dying:
        wait_until_done(bootstrap)
        with running_worker(bootstrap, two, SCRIPTED_WORKER, **QUICK) as worker:
            say(bootstrap, said[200:])
            assert dying.wait(DEATH_SECONDS_MAX) == -signal.SIGKILL
            wait_until_done(bootstrap)
            assert stop(worker) == 0
    assert_nothing_lost(bootstrap, PARTITIONS)
