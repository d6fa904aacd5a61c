"""The store: whole events or none, one line when it cannot be used, snapshots to save time."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import orjson
import pytest

from processor.app.one_process import OneProcess
from processor.engine.snapshot import dump
from replay import store_file
from replay.errors import StoreError
from replay.store import Store
from tests.app.test_one_process import as_stream, digests, run, statement
from tests.benchmarks.conversations import utterances


def standfast(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "processor.cli.main", *map(str, arguments)],
        capture_output=True,
        check=False,
        timeout=120,
    )


def test_every_turn_is_the_fold_of_its_prefix(tmp_path: Path) -> None:
    """From the nearest snapshot or from the start, a past turn has the same bytes."""
    stream = list(utterances(40))
    run(tmp_path, list(stream))
    with Store(tmp_path / "store.duckdb", read_only=True) as store:
        for turn in range(1, 41):
            prefix = tmp_path / f"prefix{turn}"
            prefix.mkdir()
            run(prefix, list(stream[:turn]))
            with Store(prefix / "store.duckdb", read_only=True) as fresh:
                expected = fresh.conversation("default", "bench")
            found = store.conversation_at("default", "bench", turn)
            assert found is not None
            assert expected is not None
            assert dump(found) == dump(expected)


def test_losing_every_snapshot_loses_nothing(tmp_path: Path) -> None:
    """Snapshots only save time: without them the log folds to the same conversation."""
    run(tmp_path, list(utterances(60)))
    before = digests(tmp_path)
    with duckdb.connect(str(tmp_path / "store.duckdb")) as connection:
        count = connection.execute("SELECT count(*) FROM snapshots").fetchone()
        assert count is not None
        assert count[0] > 3
        connection.execute("DELETE FROM snapshots")
    assert digests(tmp_path) == before


def test_the_tables_answer_with_plain_sql(tmp_path: Path) -> None:
    """An analyst asks for turns, verdicts, impacts and alerts without our code."""
    lines = [
        statement(1),
        statement(2),
        {
            **statement(3),
            "operations": [
                {
                    "op": "resolve",
                    "target": "o2",
                    "mode": "authoritative",
                    "decision": {"record": "d", "claim": "go"},
                },
                {"op": "revise", "target": "o1", "by": {"record": "n", "claim": "no"}},
            ],
        },
    ]
    run(tmp_path, list(lines))
    with duckdb.connect(str(tmp_path / "store.duckdb"), read_only=True) as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {view}").fetchone()
            for view in ("turns", "verdicts", "retraction_impacts", "ungrounded_alerts")
        ]
        alerts = connection.execute(
            "SELECT record, severity FROM ungrounded_alerts ORDER BY record"
        ).fetchall()
    assert counts == [(3,), (1,), (1,), (1,)] or alerts == [("d", "critical"), ("o2", "critical")]


def test_a_killed_run_continues_where_it_was(tmp_path: Path) -> None:
    """After kill -9 at random moments the same input ends in the digests of one quiet run."""
    source = tmp_path / "in.jsonl"
    stream = [
        {**utterance, "conversation_id": f"c{which}"}
        for utterance in utterances(400)
        for which in range(5)
    ]
    source.write_bytes(b"\n".join(orjson.dumps(each) for each in stream))
    chance = random.Random(5)
    for _ in range(4):
        command = [sys.executable, "-m", "processor.cli.main", "run", source, "--json"]
        process = subprocess.Popen(
            [*map(str, command), "--out", str(tmp_path / "killed")], stdout=subprocess.DEVNULL
        )
        time.sleep(chance.uniform(0.3, 1.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert standfast("run", source, "--out", tmp_path / "killed", "--json").returncode == 0
    assert standfast("run", source, "--out", tmp_path / "quiet", "--json").returncode == 0
    for name in ("killed", "quiet"):
        shutil.copy(tmp_path / name / "standfast.duckdb", tmp_path / name / "store.duckdb")
    assert digests(tmp_path / "killed") == digests(tmp_path / "quiet")
    with duckdb.connect(str(tmp_path / "killed" / "store.duckdb")) as connection:
        rows = connection.execute(
            "SELECT count(*), count(DISTINCT (conversation_id, sequence)) FROM log"
        ).fetchone()
        events = connection.execute(
            "SELECT count(*), count(DISTINCT event_id) FROM derived"
        ).fetchone()
    assert rows == (2_000, 2_000)
    assert events is not None
    assert events[0] == events[1]


@pytest.mark.parametrize("damage", ["truncated", "other file", "folder", "other database"])
def test_a_file_that_is_no_store_is_one_line(tmp_path: Path, damage: str) -> None:
    """What cannot be used is said in one line, with status 2, and is left as it was."""
    run(tmp_path, list(utterances(30)))
    path = tmp_path / "store.duckdb"
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:5_000])
    elif damage == "other file":
        path.write_bytes(b"not a database" * 1_000)
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.unlink()
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE mine (x INTEGER)")
    before = path.read_bytes() if path.is_file() else b""
    ran = standfast("state", "--db", path, "--conversation", "bench")
    assert ran.returncode == 2
    assert len(ran.stderr.decode().splitlines()) == 1
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    """A store that a newer version wrote is not read as if it were ours."""
    run(tmp_path, [statement(1)])
    with duckdb.connect(str(tmp_path / "store.duckdb")) as connection:
        connection.execute("UPDATE store SET format = 99")
    with pytest.raises(StoreError, match="format"):
        Store(tmp_path / "store.duckdb")


def test_a_store_that_is_being_written_is_said_to_be(tmp_path: Path) -> None:
    """While one process writes a store, another gets one line and status 2."""
    with Store(tmp_path / "store.duckdb") as store:
        list(OneProcess(store).run(as_stream([statement(1)])))
        ran = standfast("state", "--db", tmp_path / "store.duckdb", "--conversation", "c")
        assert ran.returncode == 2
        assert len(ran.stderr.decode().splitlines()) == 1
        assert b"lock" in ran.stderr.lower()


_BEGUN_BY_ANOTHER = """
import os, sys
from pathlib import Path
from replay.store_file import connect

connection = connect(Path(sys.argv[1]), read_only=False)
connection.execute("INSERT INTO positions VALUES (0, 7, 'h')")
os._exit(0)  # as if it were killed: what it wrote stands beside the file
"""


def test_a_store_that_another_made_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two processes that make the same store, the slower one takes what the other has begun."""
    path = tmp_path / "store.duckdb"
    put = store_file._put

    def slowly(fresh: Path, path: Path) -> None:
        begun = [sys.executable, "-c", _BEGUN_BY_ANOTHER, str(path)]
        assert subprocess.run(begun, check=False).returncode == 0
        put(fresh, path)

    monkeypatch.setattr(store_file, "_put", slowly)
    with Store(path) as store:
        assert store.rows("SELECT next_offset FROM positions") == [(7,)]
