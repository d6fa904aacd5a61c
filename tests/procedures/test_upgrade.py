"""Upgrade and rollback, worker by worker, from a version that is older in store and rules."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.cluster import Kafka
from tests.pipeline.test_worker import utterances
from tests.pipeline.workers import (
    WORKER,
    emitted,
    expected,
    kill,
    make_topics,
    places,
    say,
    start_worker,
    stop,
    wait_until_done,
)
from tests.procedures.runbook import carry_out, commands
from tests.waiting import wait_until

OLDER = ("tests.procedures.older_worker",)
NAMES = ("one", "other")


class Fleet:
    """Two workers, each with a store and a name that outlive its process."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap, self.folder = bootstrap, folder
        self._running: dict[str, subprocess.Popen] = {}

    def start(self, name: str, program: Sequence[str], **environment: str) -> None:
        """Start a worker on what the one of that name left."""
        path = self.folder / f"{name}.duckdb"
        settings = {"STANDFAST_WORKER_INSTANCE": name, **environment}
        before = self.log(name).count("worker_started")
        self._running[name] = start_worker(self.bootstrap, path, program, **settings)
        wait_until(lambda: self.log(name).count("worker_started") > before)

    def replace(
        self, program: Sequence[str], said: Sequence[dict[str, Any]] = (), **environment: str
    ) -> None:
        """One after the other, each drained; things are said while both versions run."""
        for name in NAMES:
            self.stop(name)
            self.start(name, program, **environment)
            half, said = said[: len(said) // 2], said[len(said) // 2 :]
            say(self.bootstrap, half if name != NAMES[-1] else [*half, *said])

    def stop(self, name: str) -> None:
        """Ask it to drain and end."""
        assert stop(self._running.pop(name)) == 0, self.log(name)[-3_000:]

    def log(self, name: str) -> str:
        """What a worker has logged, and the ones of its name before it."""
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def told(self, event: str) -> int:
        """How often workers logged an event."""
        return sum(self.log(name).count(f'"{event}"') for name in NAMES)

    def end(self) -> None:
        """Kill what still runs."""
        kill(self._running.values())


@pytest.fixture
def fleet(empty_kafka: Kafka, tmp_path: Path) -> Iterator[Fleet]:
    """Topics, and nobody who works yet."""
    make_topics(empty_kafka.bootstrap)
    workers = Fleet(empty_kafka.bootstrap, tmp_path)
    yield workers
    workers.end()


def upgrade(fleet: Fleet, said: Sequence[dict[str, Any]]) -> None:
    """Carry out the commands; the workers are replaced where the text says so."""
    *before, copied, audited = commands("Upgrade and rollback")
    words = {"bootstrap": fleet.bootstrap, "FILE": "log.duckdb", "OPTIONS": "--replication 1"}
    for command in before:
        carry_out(command, fleet.folder, **words)
    fleet.replace(WORKER, said)
    wait_until_done(fleet.bootstrap)
    for command in (copied, audited):
        carry_out(command, fleet.folder, **words)


def stored(fleet: Fleet) -> set[Any]:
    """What the stores of both workers have of the log, by digests."""
    return {each for name in NAMES for each in places(fleet.folder / f"{name}.duckdb")}


def test_workers_of_an_older_store_are_upgraded_and_rolled_back(fleet: Fleet) -> None:
    """Stores of the other format are set aside; digests are those of one process all along."""
    said = utterances(300, seed=9)
    for name in NAMES:
        fleet.start(name, OLDER)
    say(fleet.bootstrap, said[:100])
    wait_until_done(fleet.bootstrap)
    upgrade(fleet, said[100:200])
    assert fleet.told("store_set_aside") == len(NAMES)
    say(fleet.bootstrap, said[200:])
    fleet.replace(OLDER)
    wait_until_done(fleet.bootstrap)
    assert fleet.told("store_set_aside") == 2 * len(NAMES)
    fleet.replace(WORKER)
    run = expected(said, fleet.folder)
    assert emitted(fleet.bootstrap) == run.derived
    for name in NAMES:
        fleet.stop(name)
    assert sorted(stored(fleet)) == run.log


def test_rules_that_the_older_version_does_not_know(fleet: Fleet) -> None:
    """Its partitions stop after a rollback, and go on where the newer version is back."""
    said, rules = utterances(300, seed=9), {"OLDER_RULES": "2"}
    for name in NAMES:
        fleet.start(name, OLDER, **rules)
    say(fleet.bootstrap, said[:100])
    wait_until_done(fleet.bootstrap)
    upgrade(fleet, said[100:200])
    fleet.replace(OLDER, (), **rules)
    wait_until(lambda: fleet.told("partition_stopped") > 0)
    say(fleet.bootstrap, said[200:])
    fleet.replace(WORKER)
    wait_until_done(fleet.bootstrap)
    upgrade(fleet, ())
    for name in NAMES:
        fleet.stop(name)
    log = {place[:3] for place in stored(fleet)}
    assert log == {place[:3] for place in expected(said, fleet.folder).log}
