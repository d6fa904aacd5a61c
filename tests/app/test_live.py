"""The conversations of a run: a bound on all of them together, and nothing lost when one leaves."""

from __future__ import annotations

import gc
from pathlib import Path

import duckdb
import pytest

from processor.app import one_process
from processor.app.held import CONVERSATION_WEIGHT
from processor.app.live import LiveConversations
from processor.app.one_process import OneProcess
from processor.engine.record import Record
from replay.store import Store
from tests.app.test_one_process import Json, as_stream, digests, run, statement


def rounds(turns: int, conversations: int) -> list[Json | bytes]:
    """Every conversation says something in turn."""
    return [
        statement(number, conversation=f"c{which}")
        for number in range(1, turns + 1)
        for which in range(conversations)
    ]


def records_in_memory() -> int:
    """How many records the process holds, garbage included."""
    return sum(1 for thing in gc.get_objects() if type(thing) is Record)


def test_conversations_that_grow_make_room(tmp_path: Path) -> None:
    """The bound holds although nobody new comes and conversations only grow."""
    gc.collect()
    before = records_in_memory()
    gc.disable()
    try:
        with Store(tmp_path / "store.duckdb") as store:
            process = OneProcess(store, records_max=100)
            highest = 0
            for number, _ in enumerate(process.run(as_stream(rounds(40, 5)))):
                if number % 4 == 3:  # looking takes long
                    highest = max(highest, records_in_memory() - before)
    finally:
        gc.enable()
    assert 40 < highest <= 100


def test_conversations_that_are_empty_count_too(tmp_path: Path) -> None:
    """Lines that add nothing to conversations without number do not fill the memory."""
    with Store(tmp_path / "store.duckdb") as store:
        live = LiveConversations(store, records_max=10 * CONVERSATION_WEIGHT)
        first = live.get("default", "c0")
        for which in range(1, 10):
            live.get("default", f"c{which}")
        assert live.get("default", "c0") is first
        live.get("default", "c10")
        live.get("default", "c11")
        assert live.get("default", "c0") is first
        assert live.get("default", "c10").conversation_id == "c10"


def test_reading_a_conversation_back_does_not_write_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for one conversation of many the store is still written once, at the end."""
    writes = []
    flush = Store.flush

    def counted(store: Store) -> None:
        writes.append(store)
        flush(store)

    monkeypatch.setattr(Store, "flush", counted)
    monkeypatch.setattr(one_process, "COMMIT_SECONDS_MAX", float("inf"))
    run(tmp_path, rounds(5, 20), records_max=20)
    assert len(writes) == 2  # the run's end, and the store's


def test_leaving_memory_between_runs_changes_no_digest(tmp_path: Path) -> None:
    """From the temporary file or from the store, in any mix, conversations come back the same."""
    for name in ("tight", "wide"):
        (tmp_path / name).mkdir()
    for lines in (rounds(9, 6), rounds(14, 9)):
        run(tmp_path / "tight", lines, records_max=30)
        run(tmp_path / "wide", lines)
    assert digests(tmp_path / "tight") == digests(tmp_path / "wide")
    with duckdb.connect(str(tmp_path / "tight" / "store.duckdb"), read_only=True) as connection:
        rows = connection.execute("SELECT count(*) FROM log").fetchone()
    assert rows == (14 * 9,)
