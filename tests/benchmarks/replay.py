"""The figures of replay and audit in one run: `python -m tests.benchmarks.replay`.

Audit throughput against merely decoding the same log, the time to any turn of one long
conversation, and what a turn takes on the disk as a store and as Parquet segments.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TypeVar

import orjson

from processor.app.one_process import OneProcess
from replay.audit.run import audit
from replay.index import index, state_at
from replay.opened import opened
from replay.parquet import export
from replay.store import Store
from schemas.wire import decode_log_event
from tests.app.test_one_process import as_stream
from tests.benchmarks.conversations import utterances

Answer = TypeVar("Answer")
TURNS_EACH = 200
_ONE_RECORD = """
SELECT standing, grade FROM record_versions
WHERE record = ? AND from_turn <= ? AND (to_turn IS NULL OR to_turn > ?)
"""


def timed(call: Callable[[], Answer]) -> tuple[Answer, float]:
    """The answer and how many seconds it took."""
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def make(path: Path, conversations: int, turns: int) -> None:
    """A store of so many conversations of so many turns."""
    with Store(path) as store:
        process = OneProcess(store)
        for number in range(conversations):
            lines = [{**said, "conversation_id": f"c{number}"} for said in utterances(turns)]
            for _ in process.run(as_stream(list(lines))):
                pass


def decode_all(path: Path, decode: Callable[[bytes], object]) -> int:
    """Decode every event of a store, and do nothing with it."""
    count = 0
    with closing(opened(path)) as connection:
        rows = connection.execute("SELECT event FROM log")
        while page := rows.fetchmany(1_000):
            for (event,) in page:
                decode(event)
            count += len(page)
    return count


def auditing(path: Path, folder: Path, turns: int) -> None:
    """Audit throughput, and bytes per turn."""
    _, loads = timed(lambda: decode_all(path, orjson.loads))
    _, decode = timed(lambda: decode_all(path, decode_log_event))
    print(f"audit of {turns:,} turns in conversations of {TURNS_EACH}")
    for name, seconds in (("orjson.loads", loads), ("decode and validate", decode)):
        print(f"{name:>24} {turns / seconds:>10,.0f} turns/s")
    for jobs in (1, None):
        report, seconds = timed(lambda jobs=jobs: audit(path, jobs=jobs))
        assert report.divergences == []
        name = "audit, one process" if jobs else "audit, all cores"
        print(f"{name:>24} {turns / seconds:>10,.0f} turns/s {seconds / decode:>7.1f}x decoding")
    _, seconds = timed(lambda: export(path, folder))
    size = sum(each.stat().st_size for each in folder.rglob("*.parquet"))
    print(f"bytes per turn: DuckDB {path.stat().st_size / turns:,.0f}, Parquet {size / turns:,.0f}")
    print(f"export: {turns / seconds:,.0f} turns/s")


def any_turn(path: Path, turns: int) -> None:
    """How long it takes to any turn of one conversation, by both ways."""
    with Store(path) as store:
        _, seconds = timed(lambda: index(store))
    print(f"\none conversation of {turns:,} turns; interval rows: {turns / seconds:,.0f} turns/s")
    chance = Random(2)
    for turn in sorted(chance.randrange(1, turns) for _ in range(4)):
        with Store(path, read_only=True) as store:
            _, folded = timed(lambda turn=turn: store.conversation_at("default", "c0", turn))
        with closing(opened(path)) as connection:
            view, asked = timed(lambda turn=turn: state_at(connection, "default", "c0", turn))
            assert view is not None
            record = [chance.choice(view["records"])["record"], turn, turn]
            rows, one = timed(lambda ask=record: connection.execute(_ONE_RECORD, ask).fetchall())
        assert len(rows) == 1
        print(
            f"{'turn':>12} {turn:>8,}: snapshot and fold {folded:.2f} s; interval rows: "
            f"whole state {asked:.2f} s, one record {1_000 * one:.0f} ms"
        )


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="only up to 2,000 turns")
    quick = parser.parse_args().quick
    turns, long = (2_000, 2_000) if quick else (20_000, 100_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "many.duckdb", turns // TURNS_EACH, TURNS_EACH)
        auditing(folder / "many.duckdb", folder / "segments", turns)
        make(folder / "long.duckdb", 1, long)
        any_turn(folder / "long.duckdb", long)


if __name__ == "__main__":
    main()
