"""Streams, files and disks that fail: one line on stderr and status 2, whatever the command."""

from __future__ import annotations

import ctypes
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from processor.scenarios import scenario_bytes
from tests.app.test_one_process import statement
from tests.cli.test_commands import CONVERSATION, standfast

COMMAND = (sys.executable, "-m", "processor.cli.main")
PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
ASK = ("state", "--conversation", CONVERSATION, "--db")


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The incident as a file, and beside it the folder `out` with what a run made of it."""
    path = tmp_path_factory.mktemp("surroundings") / "in.jsonl"
    path.write_bytes(scenario_bytes(CONVERSATION))
    assert standfast("run", path, "--out", path.parent / "out").returncode == 0
    return path


def shell(
    command: str, *arguments: str | Path, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """The command line in a shell; `$S` is standfast and `$1`, `$2` are the arguments."""
    return subprocess.run(
        ["bash", "-c", command.replace("$S", shlex.join(COMMAND)), "bash", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        timeout=120,
    )


def limited(
    *arguments: str | Path, by: Callable[[], object], given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """The command in a process that cannot do everything."""
    return subprocess.run(
        [*COMMAND, *arguments],
        input=given,
        preexec_fn=by,
        capture_output=True,
        check=False,
        timeout=120,
    )


def _like_anybody() -> None:
    """Root without the right to pass over permissions; for others nothing changes."""
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def _with_ctrl_c() -> None:
    """As from a terminal; a test that runs in the background would ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def is_one_line(ran: subprocess.CompletedProcess[bytes], *names: str) -> bool:
    """Status 2 and one line of complaint, in which the names stand."""
    said = ran.stderr.decode(errors="replace")
    assert ran.returncode == 2, said
    assert len(said.splitlines()) == 1, said
    assert said.startswith("standfast: "), said
    return all(name in said for name in names)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ('$S run "$1" --json >/dev/full', "standard output"),
        ('$S run "$1" >/dev/full', "standard output"),
        ("$S --help >/dev/full", "standard output"),
        ('$S run "$1" >&-', "standard output is closed"),
        ("$S run - <&-", "standard input is closed"),
        ("$S run - 0>/dev/null", "standard input"),
        ('$S run "$(dirname "$1")"', "Is a directory"),
        ('$S run "$1/x"', "Not a directory"),
        ("$S run $'a\\nb'", "a b: No such file"),
        ("$S state --conversation c --db $'a\\nb'", "a b: no such file"),
        ("$S state --conversation c --db $'\\xff'", "UTF-8"),
        ("$S run - --out $'/proc/x\\ny' </dev/null", "/proc/x y"),
        ('TMPDIR=/nowhere $S run "$1" --out /dev/null/x', "/dev/null"),
    ],
)
def test_what_cannot_be_read_or_written_is_one_line(
    scenario: Path, command: str, name: str
) -> None:
    """The line says which stream or file it was."""
    assert is_one_line(shell(command, scenario), name)


def test_a_closed_stderr_changes_nothing_but_what_can_be_said(scenario: Path) -> None:
    """Status and output are as ever, and no file takes the place of the stream."""
    good = shell('$S run "$1" --json', scenario)
    assert shell('$S run "$1" --json 2>&-', scenario).stdout == good.stdout
    assert shell("$S run nowhere 2>&-").returncode == 2
    assert shell("$S run nowhere 2>/dev/full").returncode == 2


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONUNBUFFERED": "1"},
    ],
)
def test_any_encoding_of_the_output_will_do(tmp_path: Path, environment: dict[str, str]) -> None:
    """JSON is the same bytes, and in text for people what cannot be written is escaped."""
    text = statement(1, text="\N{SNOWMAN}", speaker="ann")
    text["operations"][0]["claim"] = "Schnee \N{SNOWMAN}"
    (tmp_path / "é.jsonl").write_bytes(orjson.dumps(text) + b"\nx\n")
    printed = shell('$S run "$1" --json', tmp_path / "é.jsonl", **environment).stdout
    assert "Schnee \N{SNOWMAN}".encode() in printed
    ran = shell('$S run "$1" --out "$2"', tmp_path / "é.jsonl", tmp_path / "ö", **environment)
    assert is_one_line(ran)
    assert b"Schnee" in ran.stdout
    db = tmp_path / "ö" / "standfast.duckdb"
    asked = shell('$S context --conversation c --db "$1"', db, **environment)
    assert asked.returncode == 0, asked.stderr
    assert b"Schnee" in asked.stdout


def test_folders_and_files_that_may_not_be_used_are_one_line(
    tmp_path: Path, scenario: Path
) -> None:
    """Searching, reading, writing: each refusal names the file."""
    shutil.copytree(scenario.parent, tmp_path / "shut")
    out = tmp_path / "shut" / "out"
    (out / "dead-letters.jsonl").touch(mode=0)
    ran = limited("run", "-", "--out", out, by=_like_anybody, given=b"x\n")
    assert is_one_line(ran, "dead-letters.jsonl", "Permission denied")
    (tmp_path / "shut").chmod(0)
    try:
        for arguments in (
            ("run", tmp_path / "shut" / "in.jsonl"),
            ("run", scenario, "--out", out),
            (*ASK, out / "standfast.duckdb"),
        ):
            assert is_one_line(limited(*arguments, by=_like_anybody), "shut", "Permission denied")
    finally:
        (tmp_path / "shut").chmod(0o700)
    (tmp_path / "fixed").mkdir(mode=0o500)
    ran = limited("run", scenario, "--out", tmp_path / "fixed", by=_like_anybody)
    assert is_one_line(ran, "fixed", "Permission denied")


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe or a folder in the place of a store or of the dead letters is refused at once."""
    os.mkfifo(tmp_path / "pipe")
    assert is_one_line(standfast(*ASK, tmp_path / "pipe"), "not a regular file")
    (tmp_path / "dead-letters.jsonl").mkdir()
    ran = standfast("run", "-", "--out", tmp_path, given=b"x\n")
    assert is_one_line(ran, "dead-letters.jsonl")
    (tmp_path / "dead-letters.jsonl").rmdir()
    os.mkfifo(tmp_path / "dead-letters.jsonl")
    ran = standfast("run", "-", "--out", tmp_path, given=b"x\n")
    assert is_one_line(ran, "dead-letters.jsonl")


@pytest.mark.parametrize("kilobytes", [0, 4, 40, 280])
def test_a_full_disk_is_one_line_and_the_next_run_works(tmp_path: Path, kilobytes: int) -> None:
    """Neither the first creation nor a commit that fails leaves a store that does not open."""

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1_024, kilobytes * 1_024))

    long = b"\n".join(orjson.dumps(statement(number, text="x" * 2_000)) for number in range(1, 200))
    ran = limited("run", "-", "--json", "--out", tmp_path, by=no_room, given=long)
    assert is_one_line(ran, "standfast.duckdb")
    again = standfast("run", "-", "--json", "--out", tmp_path, given=long)
    assert again.returncode == 0, again.stderr
    assert b'"utterance_id":"u199"' in again.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["standfast.duckdb"]


def test_dead_letters_on_a_full_disk_are_one_line(tmp_path: Path) -> None:
    """A letter that cannot be kept ends the run: it may not be lost silently."""

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    given = b"".join(b"%d" % number + b"x" * 60_000 + b"\n" for number in range(10))
    ran = limited("run", "-", "--out", tmp_path, by=no_room, given=given)
    assert is_one_line(ran, "dead-letters.jsonl", "File too large")
    assert standfast("run", "-", "--out", tmp_path, given=given).returncode == 2
    kept = (tmp_path / "dead-letters.jsonl").read_bytes().splitlines()
    assert len([line for line in kept if line.endswith(b"}")]) == 10


@pytest.mark.parametrize("harm", ["removed", "cut", "replaced", "folder removed"])
def test_a_store_that_is_harmed_while_it_is_written_is_noticed(tmp_path: Path, harm: str) -> None:
    """What would be written to nowhere is not called done."""
    path = tmp_path / "out" / "standfast.duckdb"
    process = subprocess.Popen(
        [*COMMAND, "run", "-", "--json", "--out", path.parent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(orjson.dumps(statement(1)) + b"\n")
    process.stdout.readline()
    match harm:
        case "removed":
            path.unlink()
        case "cut":
            os.truncate(path, 20_000)
        case "replaced":
            path.unlink()
            path.write_bytes(b"x" * 1_000_000)
        case "folder removed":
            shutil.rmtree(path.parent)
    _, said = process.communicate(orjson.dumps(statement(2)) + b"\n", timeout=120)
    assert process.returncode == 2
    assert len(said.splitlines()) == 1
    assert b"standfast.duckdb" in said


WHILE_IT_LOADS = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == "processor.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from processor.cli.__main__ import main
main()
"""
WHILE_IT_WORKS = """
import os, signal
from processor.cli import main
main.standfast.main = lambda **_: os.kill(os.getpid(), signal.SIGINT)
main.main()
"""


@pytest.mark.parametrize("held", [WHILE_IT_LOADS, WHILE_IT_WORKS])
def test_an_interrupted_query_ends_by_the_signal(held: str) -> None:
    """What changes nothing need not be told: no traceback and no message."""
    ran = subprocess.run(
        [sys.executable, "-c", held],
        preexec_fn=_with_ctrl_c,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == -signal.SIGINT
    assert ran.stderr == b""
