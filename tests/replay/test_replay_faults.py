"""Files that are locked, cut, too new or have no room: one line, status 2, and nothing damaged."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from replay.audit.run import audit
from tests.app.test_one_process import run, statement
from tests.audit.stores import execute
from tests.cli.test_surroundings import is_one_line, limited
from tests.replay.test_store import standfast

COMMANDS = (
    ("audit",),
    ("anchor", "--key", "{folder}/key.pem", "--new-key", "--out", "{folder}/anchor.jsonl"),
    ("index",),
    ("export", "--parquet", "{folder}/segments"),
    ("what-if", "--retract", "o1", "--conversation", "c"),
    ("diff", "--conversation", "c", "--turn", "1", "--turn", "2"),
    ("reinterpret", "--out", "{folder}/new"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of one conversation, with words enough to fill a small disk."""
    folder = tmp_path_factory.mktemp("whole")
    run(folder, [statement(number, text="x" * 500) for number in range(1, 40)])
    return folder / "store.duckdb"


def asked(command: tuple[str, ...], path: Path) -> list[str]:
    """A command on a store, with its own files beside it."""
    name, *options = (each.format(folder=path.parent) for each in command)
    return ["replay", name, "--db", str(path), *options]


@pytest.mark.parametrize("damage", ["truncated", "newer"])
@pytest.mark.parametrize("command", COMMANDS[:3], ids=lambda command: command[0])
def test_a_store_that_cannot_be_read_is_one_line(
    whole: Path, tmp_path: Path, command: tuple[str, ...], damage: str
) -> None:
    """A file that was cut, or written by a newer version, is named and left as it is."""
    shutil.copy(whole, path := tmp_path / "store.duckdb")
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:20_000])
    else:
        execute(path, ["UPDATE store SET format = format + 1"])
    before = path.read_bytes()
    assert is_one_line(standfast(*asked(command, path)), "store.duckdb")
    assert path.read_bytes() == before


def test_a_locked_store_is_one_line_for_every_command(whole: Path, tmp_path: Path) -> None:
    """While another process writes the file, no command waits, answers or harms it."""
    shutil.copy(whole, path := tmp_path / "store.duckdb")
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        for command in COMMANDS:
            assert is_one_line(standfast(*asked(command, path)), "store.duckdb", "lock")
        holder.communicate(b"\n")
    assert audit(path).divergences == []


@pytest.mark.parametrize("kilobytes", [0, 300])
@pytest.mark.parametrize("name", ["index", "export", "anchor"])
def test_no_room_is_one_line_and_damages_nothing(
    whole: Path, tmp_path: Path, name: str, kilobytes: int
) -> None:
    """What cannot be written is said, the store stays sound, and the next try works."""
    shutil.copy(whole, path := tmp_path / "store.duckdb")
    (command,) = (each for each in COMMANDS if each[0] == name)

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1_024, kilobytes * 1_024))

    ran = limited(*asked(command, path), by=no_room)
    if ran.returncode == 0:  # it needed no more
        return
    assert is_one_line(ran)
    assert audit(path).divergences == []
    assert not (tmp_path / "anchor.jsonl").exists()
    for made in ("key.pem", "key.pem.pub"):  # made before the anchor, each whole or not at all
        (tmp_path / made).unlink(missing_ok=True)
    assert standfast(*asked(command, path)).returncode == 0
    if name == "export":
        assert audit(tmp_path / "segments").divergences == []
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM log").fetchall() == [(39,)]


@pytest.mark.mounts
@pytest.mark.parametrize(
    ("name", "spare_kib"),
    [(name, 0) for name in ("index", "export", "anchor", "reinterpret")]
    + [("index", 8), ("export", 40), ("anchor", 8), ("reinterpret", 200)],
)
def test_a_full_disk_is_one_line_and_damages_nothing(
    whole: Path, tmp_path: Path, name: str, spare_kib: int
) -> None:
    """On a small disk of its own a command that finds no room says so, and the store is sound."""
    disk, after = tmp_path / "disk", tmp_path / "after"
    disk.mkdir()
    (command,) = (each for each in COMMANDS if each[0] == name)
    size = whole.stat().st_size // 1_024 + spare_kib
    steps = (
        f"mount -t tmpfs -o size={size}k tmpfs {disk} && cp {whole} {disk}/store.duckdb && "
        f'{{ "$@"; status=$?; cp -r {disk} {after}; exit $status; }}'
    )
    ran = subprocess.run(
        ["unshare", "-rm", "sh", "-c", steps, "sh", sys.executable, "-m", "processor.cli.main"]
        + [*asked(command, disk / "store.duckdb")]
        + (["--input", "processor/scenarios/incident.jsonl"] if name == "reinterpret" else []),
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert is_one_line(ran, str(disk))
    assert audit(after / "store.duckdb").divergences == []
    assert not (after / "anchor.jsonl").exists()
    assert not (after / "new" / "standfast.duckdb").exists()
    assert standfast(*asked(COMMANDS[2], after / "store.duckdb")).returncode == 0
