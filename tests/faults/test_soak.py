"""A soak: workers at half the rate that was measured just before, and one dies every minute.

STANDFAST_SOAK_MINUTES says for how long, 20 without it:
`STANDFAST_SOAK_MINUTES=2 python -m pytest --thorough tests/faults/test_soak.py`.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.benchmarks.pipeline import utterances
from tests.kafka.cluster import Kafka
from tests.kafka.software import ROOT
from tests.pipeline.workers import (
    kill,
    make_topics,
    places,
    say,
    start_worker,
    stop,
    wait_until_done,
)
from tests.waiting import wait_until

MINUTES = float(os.environ.get("STANDFAST_SOAK_MINUTES", "20"))
PARTITIONS = 12
STEADY, MORTALS = "steady", ("one", "other")
BURST = 3_000
COHORT_CONVERSATIONS, COHORT_TURNS = 200, 20
KILL_SECONDS = 60.0
LAG_SECONDS_MAX = 60.0
"""How long after the last utterance everything is committed."""
GROWTH_MAX = 0.1
"""How much of its memory a worker may gain, by a line through what it had, while it is watched."""
SETTINGS = {"STANDFAST_WORKER_RECORDS_MAX": "5000"}
"""So few that it is full before the line begins."""


def stream() -> Iterator[dict[str, Any]]:
    """Conversations that begin, are held for some turns, and are over: the next ones begin."""
    for cohort in itertools.count():
        for each in utterances(COHORT_CONVERSATIONS * COHORT_TURNS, COHORT_CONVERSATIONS):
            yield {**each, "conversation_id": f"{cohort}-{each['conversation_id']}"}


def memory_mb(process: subprocess.Popen) -> float:
    """What a process has in memory (Linux)."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1_048_576


class Soak:
    """Two workers that die in turn, and one that does not and is watched."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap, self.folder = bootstrap, folder
        self.said = 0
        self.memory: list[tuple[float, float]] = []
        self._stream = stream()
        self._running: dict[str, subprocess.Popen] = {}
        self._victims = itertools.cycle(MORTALS)

    def start(self, name: str) -> None:
        """Start a worker on what the one of that name left."""
        store = self.folder / f"{name}.duckdb"
        settings = {**SETTINGS, "STANDFAST_WORKER_INSTANCE": name}
        self._running[name] = start_worker(self.bootstrap, store, **settings)

    def say(self, count: int) -> None:
        """Publish the next of the stream."""
        some = list(itertools.islice(self._stream, count))
        self.said += len(some)
        say(self.bootstrap, some, PARTITIONS)

    def rate(self) -> float:
        """How many utterances in a second the workers do when all are there."""
        self.say(BURST // 10)
        wait_until_done(self.bootstrap, partitions=PARTITIONS)
        began = time.monotonic()
        self.say(BURST)
        wait_until_done(self.bootstrap, partitions=PARTITIONS)
        return BURST / (time.monotonic() - began)

    def soak(self, per_second: float, seconds: float) -> None:
        """Say so many in each second, and kill a worker now and then."""
        began, done, next_kill = time.monotonic(), 0, KILL_SECONDS / 2
        while (passed := time.monotonic() - began) < seconds:
            if (wanted := int(passed * per_second)) > done:
                self.say(wanted - done)
                done = wanted
            self.memory.append((passed, memory_mb(self._running[STEADY])))
            if passed >= next_kill:
                next_kill += KILL_SECONDS
                self._kill(next(self._victims))
            time.sleep(max(0.0, 1.0 - (time.monotonic() - began - passed)))

    def _kill(self, name: str) -> None:
        for each, process in self._running.items():
            assert process.poll() is None, (self.folder / f"{each}.log").read_text()[-3_000:]
        self._running[name].kill()
        self._running[name].wait()
        self.start(name)

    def growth(self) -> float:
        """What the watched worker gained, in parts of what it had, in the second half."""
        seen = self.memory[len(self.memory) // 2 :]  # until then DuckDB fills what it may have
        times, sizes = zip(*seen, strict=True)
        line = statistics.linear_regression(times, sizes)
        return line.slope * (times[-1] - times[0]) / statistics.mean(sizes)

    def stop(self) -> None:
        """Ask all workers to end."""
        for name, process in self._running.items():
            assert stop(process) == 0, (self.folder / f"{name}.log").read_text()[-3_000:]

    def end(self) -> None:
        """Kill what still runs."""
        kill(self._running.values())


@pytest.fixture
def soak(empty_kafka: Kafka, tmp_path: Path) -> Iterator[Soak]:
    """All workers have started."""
    make_topics(empty_kafka.bootstrap, PARTITIONS)
    made = Soak(empty_kafka.bootstrap, tmp_path)
    try:
        for name in (STEADY, *MORTALS):
            made.start(name)
            log = tmp_path / f"{name}.log"
            wait_until(lambda log=log: b"worker_started" in log.read_bytes())
        yield made
    finally:
        made.end()


def run_of(soak: Soak) -> list[Any]:
    """The log of one process without brokers, by its digests."""
    lines, out = soak.folder / "said.jsonl", soak.folder / "run"
    with lines.open("wb") as file:
        file.writelines(
            orjson.dumps(each) + b"\n" for each in itertools.islice(stream(), soak.said)
        )
    command = [sys.executable, "-m", "processor.cli", "run", str(lines), "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return places(out / "standfast.duckdb")


@pytest.mark.thorough
def test_workers_keep_up_and_stay_as_they_are(soak: Soak) -> None:
    """Memory does not grow, no lag is left, and the digests are those of one process."""
    rate = soak.rate()
    soak.soak(rate / 2, MINUTES * 60)
    wait_until_done(soak.bootstrap, LAG_SECONDS_MAX, PARTITIONS)
    print(f"{soak.said:,} said, at {rate / 2:.0f}/s; memory grew by {soak.growth():+.1%}")
    print([f"{at:.0f} s: {mb:.0f} MB" for at, mb in soak.memory[:: max(1, len(soak.memory) // 20)]])
    soak.stop()
    assert soak.growth() < GROWTH_MAX
    found = {each for name in (STEADY, *MORTALS) for each in places(soak.folder / f"{name}.duckdb")}
    assert sorted(found) == run_of(soak)
