"""A folder of segments holds what the archive holds, and is audited as the archive is."""

from __future__ import annotations

import hashlib
import shutil
from contextlib import closing
from pathlib import Path

import duckdb
import orjson
import pytest

from processor.engine.snapshot import dump
from replay.audit.run import audit
from replay.errors import StoreError
from replay.opened import opened
from replay.parquet import export
from replay.segment_place import MANIFEST
from replay.segments_found import read_manifest
from replay.store import Store
from tests.app.test_one_process import run, statement
from tests.audit.stores import make_archive
from tests.replay.test_store import standfast
from tests.strategies_streams import seeded_stream

TABLES = ("store", "log", "derived", "snapshots", "messages", "copied", "gaps", "positions")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive, and beside it the same as a folder."""
    path = tmp_path_factory.mktemp("archive") / "archive.duckdb"
    make_archive(path, seeded_stream(3, 40))
    assert export(path, path.parent / "segments") > 100
    return path


@pytest.fixture
def segments(archive: Path, tmp_path: Path) -> Path:
    """A copy of the folder."""
    return Path(shutil.copytree(archive.parent / "segments", tmp_path / "segments"))


def rows(path: Path, table: str) -> list[str]:
    """All rows of a table, in an order of their own."""
    with closing(opened(path)) as connection:
        return sorted(map(repr, connection.execute(f"SELECT * FROM {table}").fetchall()))


def test_the_folder_holds_every_row(archive: Path) -> None:
    """Each table has the same rows, and they lie by topic, tenant and day."""
    folder = archive.parent / "segments"
    for table in TABLES:
        columns = "* EXCLUDE (said_at)" if table == "log" else "*"
        columns = "* EXCLUDE (timestamp)" if table == "messages" else columns
        with closing(opened(archive)) as one, closing(opened(folder)) as other:
            query = f"SELECT {columns} FROM {table}"
            ours, theirs = (each.execute(query).fetchall() for each in (one, other))
        assert sorted(map(repr, ours)) == sorted(map(repr, theirs)), table
    assert list(folder.glob("messages/topic=operations/tenant=acme/day=*/*.parquet"))
    assert not list(folder.glob(".writing*"))


def test_both_are_audited_alike(archive: Path, segments: Path) -> None:
    """The report on the folder is that on the file: no divergence in as many rows."""
    assert audit(segments) == audit(archive)
    assert audit(segments).divergences == []


def test_questions_are_answered_from_the_folder(tmp_path: Path) -> None:
    """Any turn is read from the segments as from the store."""
    run(tmp_path, [statement(number) for number in range(1, 15)])
    path, folder = tmp_path / "store.duckdb", tmp_path / "segments"
    done = standfast("replay", "export", "--db", path, "--parquet", folder, "--json")
    assert orjson.loads(done.stdout)["rows"] > 28
    for turn in (None, 0, 5, 13):
        with Store(path, read_only=True) as one, Store(folder, read_only=True) as other:
            found = [each.conversation_at("default", "c", turn) for each in (one, other)]
        assert found[0] is not None
        assert found[1] is not None
        assert dump(found[0]) == dump(found[1])
    asked = standfast("verify", "o3", "--db", folder, "--conversation", "c")
    assert asked.stdout.startswith(b"o3 is grounded")


def test_what_has_come_since_is_added(tmp_path: Path) -> None:
    """A second export writes the new rows only, in segments of their own."""
    run(tmp_path, [statement(number) for number in range(1, 6)])
    path, folder = tmp_path / "store.duckdb", tmp_path / "segments"
    export(path, folder)
    before = {each: each.stat().st_mtime_ns for each in folder.glob("log/**/*.parquet")}
    run(tmp_path, [statement(number) for number in range(1, 9)])
    assert export(path, folder) == 3 * 3 + 1  # three events with what came of each, and a snapshot
    assert export(path, folder) == 0
    assert {each: each.stat().st_mtime_ns for each in before} == before
    report = audit(folder)
    assert (report.divergences, report.turns) == ([], 8)


def test_another_archive_is_not_added(archive: Path, segments: Path, tmp_path: Path) -> None:
    """Into a folder goes one archive only; another one is refused, and the folder stays."""
    run(tmp_path, [statement(number, conversation="other") for number in range(1, 90)])
    with pytest.raises(StoreError, match="is not what was exported"):
        export(tmp_path / "store.duckdb", segments)
    assert audit(segments).divergences == []


def forge(folder: Path, table: str, change: str) -> None:
    """Change the rows of the first segment of a table, and its hash in the manifest."""
    manifest = read_manifest(folder)
    segment = next(each for each in manifest.segments if each.table == table)
    path, fresh = folder / segment.path, folder / "fresh.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT * REPLACE ({change}) FROM read_parquet('{path}', "
            f"hive_partitioning = false)) TO '{fresh}'"
        )
    fresh.rename(path)
    stored = path.read_bytes()
    forged = segment.model_copy(
        update={"sha256": hashlib.sha256(stored).hexdigest(), "bytes": len(stored)}
    )
    others = [each for each in manifest.segments if each is not segment]
    told = manifest.model_copy(update={"segments": (forged, *others)})
    (folder / MANIFEST).write_bytes(told.model_dump_json().encode())


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("log", "'eve' AS speaker"),
        ("derived", "turn + 1 AS turn"),
        ("messages", "timestamp_ms + 1 AS timestamp_ms"),
        ("snapshots", "size + 1 AS size"),
        ("copied", "next_offset + 1 AS next_offset"),
    ],
)
def test_a_forged_segment_is_located(segments: Path, table: str, change: str) -> None:
    """Rows that were changed together with the hash of their segment are found all the same."""
    forge(segments, table, change)
    found = audit(segments).divergences
    assert found
    assert {each.where.table for each in found} == {table}


def test_damaged_bytes_of_a_segment_are_never_clean(segments: Path) -> None:
    """A flipped byte anywhere in a segment is told, or the segment cannot be read."""
    path = max(segments.glob("log/**/*.parquet"), key=lambda each: each.stat().st_size)
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 8)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            is_clean = not audit(segments).divergences
        except StoreError:
            is_clean = False
        assert not is_clean


@pytest.mark.parametrize("damage", ["no manifest", "newer", "no segment", "cut"])
def test_a_folder_that_cannot_be_read_is_one_line(segments: Path, damage: str) -> None:
    """What is missing or too new is said in one line, with status 2."""
    manifest = segments / MANIFEST
    if damage == "no manifest":
        manifest.unlink()
    elif damage == "newer":
        manifest.write_bytes(manifest.read_bytes().replace(b'"format":2', b'"format":3'))
    else:
        path = next(segments.glob("log/**/*.parquet"))
        if damage == "cut":
            path.write_bytes(path.read_bytes()[:40])
        else:
            path.unlink()
    done = standfast("replay", "audit", "--db", segments)
    assert (done.returncode, done.stdout) == (2, b"")
    (line,) = done.stderr.splitlines()
    assert str(segments).encode() in line
