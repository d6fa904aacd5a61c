"""An archive of very many turns, and its audit on all cores, in one command.

`python -m tests.audit.many_turns` makes a million turns and audits them; `--turns N` fewer. With
`--db FILE` the archive stays, and another call goes on to its audit. It needs five gigabytes of
disk for a million turns, and less than a gigabyte of memory for each core.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from processor.app.archive_fold import ArchiveFold
from replay.archive import Archive
from replay.archive_batch import ArchivedMessage, MessageBatch
from replay.audit.run import AuditReport, audit
from tests.audit.stores import messages_of
from tests.benchmarks.conversations import utterances

TURNS_EACH = 100
DISK_BYTES_PER_TURN = 5_000
MEMORY_MIB_MAX = 1_024
"""Of each process."""
_TOLD_EVERY = 20_000


def make(path: Path, turns: int, on_turns: Callable[[int], None] = lambda _: None) -> None:
    """An archive of so many turns, in conversations of `TURNS_EACH`; memory does not grow."""
    ends: dict[tuple[str, int], int] = {}
    with Archive(path) as archive:
        fold = ArchiveFold(archive, _refuse)
        for number in range(turns // TURNS_EACH):
            batch = MessageBatch()
            for topic, partition, key, value, headers in messages_of(list(_said(number))):
                place = (topic, partition)
                offset = ends[place] = ends.get(place, -1) + 1
                batch.add(ArchivedMessage(*place, offset, 1_772_332_260_000, key, headers, value))
            archive.write(batch)
            fold.fold(each for each in batch.messages if each.topic == "operations")
            on_turns(TURNS_EACH)


def check(path: Path, turns: int, on_events: Callable[[int], None] = lambda _: None) -> AuditReport:
    """Audit it on all cores: all turns are looked at, and nothing diverges."""
    report = audit(path, on_events=on_events)
    assert report.divergences == [], report.divergences[:10]
    assert (report.turns, report.not_folded, report.complete) == (turns, 0, True)
    assert report.messages > turns
    return report


def _said(number: int) -> Iterator[dict[str, Any]]:
    for each in utterances(TURNS_EACH):
        yield {**each, "tenant_id": f"t{number % 7}", "conversation_id": f"c{number}"}


def _refuse(where: str) -> None:
    raise AssertionError(f"{where}: what was made here is not folded")


class _Told:
    """Says every so often how far the work is, and how long that took."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._start = time.monotonic()
        self._done = 0

    def step(self, count: int) -> None:
        """So many more are done."""
        before = self._done // _TOLD_EVERY
        self._done += count
        if self._done // _TOLD_EVERY > before:
            self.tell()

    def tell(self) -> None:
        """Say it now."""
        seconds = time.monotonic() - self._start
        rate = self._done / max(seconds, 0.001)
        print(f"{self._what}: {self._done:,} in {seconds:,.0f} s, {rate:,.0f}/s", flush=True)


def main() -> None:
    """Make the archive, if it is not there, and audit it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--db", type=Path, help="Keep the archive there.")
    options = parser.parse_args()
    turns = options.turns // TURNS_EACH * TURNS_EACH
    with tempfile.TemporaryDirectory() as folder:
        path = options.db or Path(folder, "archive.duckdb")
        if not path.exists():
            free, needed = shutil.disk_usage(path.parent).free, turns * DISK_BYTES_PER_TURN
            if free < needed:
                sys.exit(f"{path.parent}: {free:,} bytes are free and {needed:,} are needed")
            told = _Told("turns made")
            fresh = path.with_name(f"{path.name}.part")
            make(fresh, turns, told.step)
            fresh.rename(path)
            told.tell()
        told = _Told("events and messages audited")
        report = check(path, turns, told.step)
        told.tell()
        bytes_each = path.stat().st_size / turns
    own, jobs = (
        resource.getrusage(who).ru_maxrss / 1_024
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(
        f"{report.turns:,} turns and {report.messages:,} messages: no divergence; "
        f"{bytes_each:,.0f} bytes a turn, {own:,.0f} MiB here and {jobs:,.0f} MiB in a process"
    )
    assert max(own, jobs) < MEMORY_MIB_MAX


if __name__ == "__main__":
    main()
