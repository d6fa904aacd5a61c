"""Runs that end before their input does: nothing is lost, and nothing stored but not printed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import orjson
import pytest

from tests.app.test_one_process import statement
from tests.cli.test_commands import standfast

COMMAND = (sys.executable, "-m", "processor.cli.main")
LINES = 600
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An input that takes a moment and prints more than a pipe holds."""
    path = tmp_path_factory.mktemp("cut") / "in.jsonl"
    lines = [statement(number, f"c{number % 3}") for number in range(1, LINES + 1)]
    for line in lines:
        line["operations"][0]["premises"] = []
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path


@contextmanager
def running(*arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command at work, with pipes for everything."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def say(process: subprocess.Popen[bytes], number: int) -> None:
    """One more line on the standard input of the process."""
    assert process.stdin is not None
    process.stdin.write(orjson.dumps(statement(number)) + b"\n")


def hear(process: subprocess.Popen[bytes]) -> bytes:
    """What the process prints next; fails if nothing comes."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], PATIENCE_SECONDS)[0], "it stays silent"
    return os.read(process.stdout.fileno(), 65_536)


def event_ids(printed: bytes) -> list[str]:
    """The ids of the events that were printed whole."""
    whole, _, _ = printed.rpartition(b"\n")
    return [orjson.loads(line)["data"]["event_id"] for line in whole.splitlines()]


def stored_ids(out: Path) -> set[str]:
    """The ids of the events in the store."""
    with duckdb.connect(str(out / "standfast.duckdb"), read_only=True) as connection:
        return {row[0] for row in connection.execute("SELECT event_id FROM derived").fetchall()}


def utterances_stored(out: Path) -> int:
    """How long the logs in the store are."""
    with duckdb.connect(str(out / "standfast.duckdb"), read_only=True) as connection:
        row = connection.execute("SELECT count(*) FROM log").fetchone()
    assert row is not None
    return int(row[0])


def test_what_is_said_slowly_is_answered_at_once_and_soon_committed(tmp_path: Path) -> None:
    """Each line is answered while the pipe stays open, and kill -9 later loses none."""
    printed = b""
    with running("run", "-", "--json", "--out", tmp_path) as process:
        for number in (1, 2, 3):
            say(process, number)
            while f'"utterance_id":"u{number}"'.encode() not in printed:
                printed += hear(process)
        time.sleep(5)
        process.kill()
    assert utterances_stored(tmp_path) == 3
    assert stored_ids(tmp_path) <= set(event_ids(printed))


def test_what_is_stored_was_printed_before(tmp_path: Path, source: Path) -> None:
    """Killed at any moment, a run leaves no event in the store that its output does not have."""
    kept: set[str] = set()
    for seconds in (1.5, 2.5, 3.5):
        with (tmp_path / "printed").open("ab") as printed:
            process = subprocess.Popen(
                [*COMMAND, "run", source, "--json", "--out", tmp_path],
                stdout=printed,
            )
            time.sleep(seconds)
            process.kill()
            process.wait()
            printed.write(b"\n")  # ends the line that was cut
        whole = [
            line
            for line in (tmp_path / "printed").read_bytes().splitlines()
            if line.endswith(b"}}") and line.startswith(b'{"type"')
        ]
        if (tmp_path / "standfast.duckdb").exists():
            stored = stored_ids(tmp_path)
            assert stored <= set(event_ids(b"\n".join(whole) + b"\n"))
            assert kept <= stored
            kept = stored


@pytest.mark.parametrize("flags", [("--json",), ()])
def test_a_reader_that_goes_away_ends_a_run_that_is_kept(
    tmp_path: Path, source: Path, flags: tuple[str, ...]
) -> None:
    """What was processed is committed, the status says it is not all, a rerun does the rest."""
    with running("run", source, "--out", tmp_path, *flags) as process:
        assert process.stdout is not None
        hear(process)
        process.stdout.close()
        assert process.wait(PATIENCE_SECONDS) == 128 + signal.SIGPIPE
        assert process.stderr is not None
        assert process.stderr.read() == b""
        process.stdout = None
    assert 0 < utterances_stored(tmp_path) < LINES
    assert standfast("run", source, "--out", tmp_path, *flags).returncode == 0
    assert utterances_stored(tmp_path) == LINES


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_nothing_comes_ends_the_run(tmp_path: Path, number: signal.Signals) -> None:
    """An idle run commits what it has, says in one line that it was stopped, and ends at once."""
    with running("run", "-", "--json", "--out", tmp_path) as process:
        say(process, 1)
        printed = hear(process)
        process.send_signal(number)
        assert process.wait(PATIENCE_SECONDS) == 128 + number
        assert process.stdout is not None
        assert process.stderr is not None
        printed += process.stdout.read()
        (line,) = process.stderr.read().decode().splitlines()
    assert number.name in line
    assert set(event_ids(printed)) == stored_ids(tmp_path)


def test_a_signal_while_it_works_loses_nothing_and_repeats_nothing(
    tmp_path: Path, source: Path
) -> None:
    """What was printed is what is stored, and the rerun prints the rest, each event once."""
    with running("run", source, "--json", "--out", tmp_path) as process:
        printed = hear(process)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)  # as timeout(1) does
        rest, complaint = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 128 + signal.SIGTERM
    assert len(complaint.splitlines()) == 1
    first = event_ids(printed + rest)
    assert set(first) == stored_ids(tmp_path)
    again = standfast("run", source, "--json", "--out", tmp_path)
    assert again.returncode == 0
    both = first + event_ids(again.stdout)
    assert len(both) == len(set(both))
    assert set(both) == stored_ids(tmp_path)
    assert utterances_stored(tmp_path) == LINES


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_after_the_last_line_changes_no_status(unbuffered: str) -> None:
    """The summary that nobody reads does not hide that a line was bad."""
    process = subprocess.Popen(
        [*COMMAND, "run", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"garbage\n")
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, complaint = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 2
    assert len(complaint.splitlines()) == 1
