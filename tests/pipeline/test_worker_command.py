"""`standfast worker` as a command: settings, topics that do not fit, the embedded broker."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import orjson

from tests.kafka.cluster import Kafka
from tests.kafka.software import ROOT
from tests.pipeline.workers import make_topics

COMMAND = (sys.executable, "-m", "processor.cli")


def test_settings_are_shown_without_secrets() -> None:
    """What a worker would run with, from its environment."""
    shown = subprocess.run(
        [*COMMAND, "worker", "--print-settings", "--bootstrap", "broker:9092"],
        cwd=ROOT,
        env={
            "STANDFAST_WORKER_GROUP": "blue",
            "STANDFAST_WORKER_LISTEN_PORT": "8080",
            "STANDFAST_WORKER_PEERS": '["http://other:8080"]',
            "STANDFAST_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "STANDFAST_KAFKA_USERNAME": "ann",
            "STANDFAST_KAFKA_PASSWORD": "hunter2",
            "STANDFAST_INTERPRETER_KIND": "openai",
            "STANDFAST_INTERPRETER_MODEL": "small",
            "OPENAI_API_KEY": "hunter2",
        },
        capture_output=True,
        check=True,
    )
    settings = orjson.loads(shown.stdout)
    assert settings["worker"]["group"] == "blue"
    assert settings["worker"]["listen_port"] == 8080
    assert settings["worker"]["peers"] == ["http://other:8080"]
    assert settings["kafka"]["bootstrap"] == "broker:9092"
    assert settings["interpreter"]["model"] == "small"
    assert settings["interpreter"]["api_key"] == "**********"
    assert b"hunter2" not in shown.stdout + shown.stderr


def test_a_setting_that_cannot_be_used_is_named() -> None:
    """One line, and status 2."""
    refused = subprocess.run(
        [*COMMAND, "worker", "--bootstrap", "broker:9092"],
        cwd=ROOT,
        env={"STANDFAST_WORKER_CALLS_MAX": "none"},
        capture_output=True,
        check=False,
    )
    assert refused.returncode == 2
    assert refused.stderr.count(b"\n") == 1
    assert b"STANDFAST_WORKER_CALLS_MAX" in refused.stderr


def test_it_refuses_topics_that_do_not_fit(empty_kafka: Kafka, tmp_path: Path) -> None:
    """It says which, and what to run; topics that fit are no reason."""
    make_topics(empty_kafka.bootstrap)
    refused = subprocess.run(
        [
            *(*COMMAND, "worker", "--bootstrap", empty_kafka.bootstrap),
            *("--store", str(tmp_path / "worker.duckdb")),
        ],
        cwd=ROOT,
        env={"STANDFAST_WORKER_REPLICATION": "3"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert refused.returncode == 2
    assert refused.stderr.count(b"\n") == 1
    assert b"standfast topics check" in refused.stderr
    assert b"replica" in refused.stderr


def test_the_embedded_broker_is_enough_to_try_it_out(tmp_path: Path) -> None:
    """A worker with a broker in memory, an utterance file, and the verdicts it leads to."""
    store = tmp_path / "worker.duckdb"
    with subprocess.Popen(
        [*COMMAND, "worker", "--embedded-broker", "--store", str(store)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as worker:
        assert worker.stdout is not None
        address = worker.stdout.readline().decode().split()[1]
        scenario = ROOT / "processor" / "scenarios" / "incident-with-candidates.jsonl"
        connection = ("--bootstrap", address)
        sent = subprocess.run(
            [*COMMAND, "produce", str(scenario), *connection], cwd=ROOT, check=False, timeout=60
        )
        assert sent.returncode == 0
        tail = subprocess.run(
            [*COMMAND, "tail", "verdicts", *connection, "--from-beginning", "--max", "1", "--json"],
            cwd=ROOT,
            capture_output=True,
            check=False,
            timeout=60,
        )
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(40) == 0
    assert orjson.loads(tail.stdout)["type"] == "standfast.verdict.v1"
