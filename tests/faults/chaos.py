"""Workers that come and go while utterances arrive: the plan of a chaos run, and its execution."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.script import as_text
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import (
    SCRIPTED_WORKER,
    make_topics,
    say,
    start_worker,
    stop,
    wait_until_done,
)
from tests.strategies_streams import seeded_stream

TENANTS = 20
BATCHES = 100
PARTITIONS = 12


@dataclass(frozen=True)
class Plan:
    """How much is said over how long, and what happens meanwhile."""

    utterances: int
    conversations: int
    kills: int
    seconds_between: float = 20.0
    workers: int = 3
    replication: int = 1
    restart_broker: bool = False
    change_workers: bool = False
    seed: int = 11

    @property
    def seconds(self) -> float:
        """How long it takes, the time after the last kill included."""
        return self.seconds_between * (self.kills + 0.5)

    def said(self) -> list[dict[str, Any]]:
        """The utterances; every second conversation's are text, and some are said again later."""
        per_tenant = self.conversations // TENANTS
        names = [(f"tenant-{t}", f"c{n}") for n in range(per_tenant) for t in range(TENANTS)]
        stream = [dict(each) for each in seeded_stream(self.seed, self.utterances, names)]
        chance = random.Random(self.seed)
        said: list[dict[str, Any]] = []
        for each in stream:
            said.append(as_text(each) if int(each["conversation_id"][1:]) % 2 else each)
            if chance.random() < 0.03:
                said.append(chance.choice(said[-200:]))
            if chance.random() < 0.01:
                said.append({**chance.choice(said[-200:]), "speaker": "mallory"})
        return said


@dataclass
class Crowd:
    """The workers of a run. One that dies is started again, now and then without its store."""

    bootstrap: str
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    chance: random.Random = field(default_factory=lambda: random.Random(5))

    def __post_init__(self) -> None:
        """Nobody is there yet."""
        self._running: dict[int, Any] = {}
        self._made = 0

    def add(self, number: int | None = None) -> None:
        """Start a worker, one of an earlier number with what that left."""
        if number is None:
            number, self._made = self._made, self._made + 1
        store = self.folder / f"worker-{number}.duckdb"
        self._running[number] = start_worker(
            self.bootstrap, store, SCRIPTED_WORKER, **self.environment
        )

    def assert_all_run(self) -> None:
        """No worker ends by itself."""
        for number, process in self._running.items():
            log = (self.folder / f"worker-{number}.log").read_text()
            assert process.poll() is None, f"worker {number}: {log[-3_000:]}"

    def kill_one(self) -> None:
        """Kill one -9 and start it again."""
        number = self.chance.choice(sorted(self._running))
        self._running[number].kill()
        self._running.pop(number).wait()
        if self.chance.random() < 0.4:
            (self.folder / f"worker-{number}.duckdb").unlink(missing_ok=True)
            (self.folder / f"worker-{number}.duckdb.wal").unlink(missing_ok=True)
        self.add(number)

    def remove_one(self) -> None:
        """Ask one to stop; it must end as it should."""
        number = self.chance.choice(sorted(self._running))
        process = self._running.pop(number)
        assert stop(process, 60) == 0, (self.folder / f"worker-{number}.log").read_text()[-3_000:]

    def stop_all(self) -> None:
        """Ask all to stop."""
        while self._running:
            self.remove_one()

    def kill_all(self) -> None:
        """The end of a run that failed."""
        for process in self._running.values():
            process.kill()
            process.wait()


@contextmanager
def _saying(bootstrap: str, said: Sequence[dict[str, Any]], seconds: float) -> Iterator[None]:
    """Publish evenly over the time, from a thread; at the end of the block all is published."""
    failed: list[BaseException] = []
    size = -(-len(said) // BATCHES)

    def publish() -> None:
        start = time.monotonic()
        for number in range(BATCHES):
            time.sleep(max(0.0, start + number * seconds / BATCHES - time.monotonic()))
            try:
                say(bootstrap, said[number * size : (number + 1) * size], PARTITIONS)
            except BaseException as error:
                failed.append(error)
                raise

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert not failed, failed


def run(plan: Plan, kafka: Kafka, folder: Path) -> list[dict[str, Any]]:
    """Execute a plan; what was said. Everything is committed at the end, and all workers ended."""
    said = plan.said()
    make_topics(kafka.bootstrap, PARTITIONS, plan.replication)
    crowd = Crowd(kafka.bootstrap, folder, {"STANDFAST_WORKER_REPLICATION": str(plan.replication)})
    try:
        for _ in range(plan.workers):
            crowd.add()
        with _saying(kafka.bootstrap, said, plan.seconds):
            for kill in range(plan.kills):
                time.sleep(plan.seconds_between)
                crowd.assert_all_run()
                crowd.kill_one()
                if plan.restart_broker and kill == plan.kills // 2:
                    kafka.brokers[1].kill()
                    kafka.brokers[1].start()
                if plan.change_workers and kill % 3 == 1:
                    crowd.add() if kill % 2 else crowd.remove_one()
        wait_until_done(kafka.bootstrap, 300, PARTITIONS)
        crowd.assert_all_run()
        crowd.stop_all()
    finally:
        crowd.kill_all()
    return said
