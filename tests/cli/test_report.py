"""`standfast replay report`: one file or one clear line."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import orjson
import pytest

from processor.scenarios import scenario_bytes
from tests.replay.test_store import standfast


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the deliberation."""
    folder = tmp_path_factory.mktemp("deliberation")
    (folder / "in.jsonl").write_bytes(scenario_bytes("deliberation"))
    assert standfast("run", folder / "in.jsonl", "--out", folder, "--json").returncode == 0
    return folder / "standfast.duckdb"


def report(db: Path, out: Path, *more: str) -> tuple[int, bytes, bytes]:
    """Status, output and errors of the command."""
    asked = ("--conversation", "deliberation", "--out", str(out), *more)
    done = standfast("replay", "report", "--db", db, *asked)
    return done.returncode, done.stdout, done.stderr


def test_the_page_is_one_file_and_always_the_same(db: Path, tmp_path: Path) -> None:
    """Two runs write the same bytes, nothing beside them, and JSON says what was written."""
    status, said, complaint = report(db, tmp_path / "one.html", "--json")
    assert (status, complaint) == (0, b"")
    assert report(db, tmp_path / "two.html")[0] == 0
    one, two = ((tmp_path / name).read_bytes() for name in ("one.html", "two.html"))
    assert one == two
    assert orjson.loads(said) == {
        "bytes": len(one),
        "out": str(tmp_path / "one.html"),
        "records": 23,
        "turns": 19,
    }
    assert sorted(os.listdir(tmp_path)) == ["one.html", "two.html"]


def test_what_cannot_be_shown_is_one_line(db: Path, tmp_path: Path) -> None:
    """No file, no store, no such conversation, nowhere to write: status 2, one line, no page."""
    (tmp_path / "text.duckdb").write_text("hello" * 100)
    out = tmp_path / "page.html"
    for where, target, more, said in (
        (tmp_path / "none.duckdb", out, (), "no such file"),
        (tmp_path / "text.duckdb", out, (), "not a standfast store"),
        (db, out, ("--tenant", "acme"), "tenant 'acme' has no conversation 'deliberation'"),
        (db, tmp_path / "no" / "page.html", (), "cannot write: No such file or directory"),
    ):
        status, shown, complaint = report(where, target, *more)
        assert (status, shown) == (2, b""), said
        assert complaint.count(b"\n") == 1
        assert said in complaint.decode()
    assert not out.exists()


def test_links_and_pipes_stay_what_they_are(db: Path, tmp_path: Path) -> None:
    """A link leads to the new page, and a pipe has it."""
    (tmp_path / "link.html").symlink_to(tmp_path / "page.html")
    assert report(db, tmp_path / "link.html")[0] == 0
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").read_bytes().lstrip().lower().startswith(b"<!doctype html>")
    status, shown, _ = report(db, Path("/dev/stdout"))
    assert status == 0
    assert shown.lstrip().lower().startswith(b"<!doctype html>")


def test_a_store_that_is_being_written_is_one_line(db: Path, tmp_path: Path) -> None:
    """While another process writes the store, the command says so and changes nothing."""
    copy = tmp_path / "busy.duckdb"
    copy.write_bytes(db.read_bytes())
    with duckdb.connect(str(copy)):
        status, _, complaint = report(copy, tmp_path / "page.html")
    assert status == 2
    assert complaint.count(b"\n") == 1
    assert b"busy.duckdb: cannot open: " in complaint
    assert b"lock" in complaint


def test_an_altered_store_is_named(db: Path, tmp_path: Path) -> None:
    """A stored event that was changed is located, and no page is written of it."""
    copy = tmp_path / "altered.duckdb"
    copy.write_bytes(db.read_bytes())
    with duckdb.connect(str(copy)) as connection:
        connection.execute(
            "UPDATE log SET event = replace(event::VARCHAR, 'Yjs', 'Nix')::BLOB WHERE sequence = 8"
        )
    status, _, complaint = report(copy, tmp_path / "page.html")
    assert status == 2
    assert b"event 8 of default/deliberation was altered" in complaint
    assert not (tmp_path / "page.html").exists()


def test_a_truncated_store_is_one_line(db: Path, tmp_path: Path) -> None:
    """A file that was cut short is reported in one line, wherever it was cut."""
    whole = db.read_bytes()
    for share in (0.3, 0.7):
        copy = tmp_path / "cut.duckdb"
        copy.write_bytes(whole[: int(len(whole) * share)])
        status, _, complaint = report(copy, tmp_path / "page.html")
        assert status == 2, share
        assert complaint.count(b"\n") == 1
        assert b"cut.duckdb" in complaint
