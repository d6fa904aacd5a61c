"""A worker that is asked to stop is gone in time, whatever it is doing."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path

from tests.faults.script import ASKED, as_text
from tests.faults.scripted_worker import BLOCKED
from tests.faults.test_input import utterance
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import (
    SCRIPTED_WORKER,
    make_topics,
    running_worker,
    say,
    start_worker,
)
from tests.waiting import wait_until

SECONDS_MAX = 90.0
TEXT = as_text(utterance("u1", kind="statement"))


def wait_for(log: Path, text: str) -> None:
    """Until the worker's log has it."""
    wait_until(lambda: text in log.read_text(), told=log.read_text)


def test_it_stops_while_it_waits_for_brokers(tmp_path: Path) -> None:
    """At once, with 0: nothing was in hand."""
    store = tmp_path / "worker.duckdb"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        worker = start_worker(f"127.0.0.1:{silent.getsockname()[1]}", store)
        silent.settimeout(SECONDS_MAX)
        connection, _ = silent.accept()  # and never answered
        with connection:
            worker.terminate()
            assert worker.wait(SECONDS_MAX) == 0
    assert "asked to stop before it had started" in store.with_suffix(".log").read_text()


def test_it_stops_while_it_joins(empty_kafka: Kafka, tmp_path: Path) -> None:
    """A rebalance takes seconds; it does not wait for the end of that."""
    make_topics(empty_kafka.bootstrap)
    store = tmp_path / "worker.duckdb"
    worker = start_worker(
        empty_kafka.bootstrap, store, SCRIPTED_WORKER, STANDFAST_WORKER_LISTEN_PORT="0"
    )
    wait_for(store.with_suffix(".log"), '"listening"')
    worker.terminate()
    assert worker.wait(SECONDS_MAX) == 0


def test_it_ends_where_it_is_when_asked_again_later(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Two signals at once are one; a second later somebody means it."""
    make_topics(empty_kafka.bootstrap)
    say(empty_kafka.bootstrap, [TEXT])
    store = tmp_path / "worker.duckdb"
    with running_worker(
        empty_kafka.bootstrap,
        store,
        SCRIPTED_WORKER,
        STANDFAST_SCRIPT_SECONDS_MAX="100000",  # a call in hand that does not end
    ) as worker:
        wait_for(store.with_suffix(".log"), ASKED)
        worker.terminate()
        worker.terminate()
        time.sleep(1.2)
        assert worker.poll() is None
        worker.terminate()
        assert worker.wait(SECONDS_MAX) == -signal.SIGTERM


def test_it_ends_though_its_event_loop_is_stuck(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Nothing that runs in the loop can see to that, not even the signal's arrival."""
    make_topics(empty_kafka.bootstrap)
    store = tmp_path / "worker.duckdb"
    with running_worker(
        empty_kafka.bootstrap,
        store,
        SCRIPTED_WORKER,
        STANDFAST_FAULT="append:1",
        STANDFAST_FAULT_BLOCKS="1",
        STANDFAST_SCRIPT_SECONDS_MAX="0",
        STANDFAST_WORKER_DRAIN_SECONDS_MAX="1",
    ) as worker:
        say(empty_kafka.bootstrap, [TEXT])
        wait_for(store.with_suffix(".log"), BLOCKED)
        worker.terminate()
        began = time.monotonic()
        assert worker.wait(SECONDS_MAX) == 1
        assert time.monotonic() - began >= 10
