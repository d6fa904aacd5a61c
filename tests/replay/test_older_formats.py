"""Stores and exports of an earlier version: one line says so, and nothing is done to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import orjson
import pytest

from processor.scenarios import scenario_bytes
from replay.segments import PARQUET_FORMAT
from replay.store_file import STORE_FORMAT
from tests.erasure.sites import standfast

NOWHERE = ("--bootstrap", "127.0.0.1:1")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "in.jsonl").write_bytes(scenario_bytes("incident"))
    assert standfast("run", folder / "in.jsonl", "--out", folder).returncode == 0
    exported = ("--db", folder / "standfast.duckdb", "--parquet", folder / "export")
    assert standfast("replay", "export", *exported).returncode == 0
    with duckdb.connect(str(folder / "standfast.duckdb")) as connection:
        connection.execute("UPDATE store SET format = ?", [STORE_FORMAT - 1])
    manifest = folder / "export" / "manifest.json"
    manifest.write_bytes(
        orjson.dumps({**orjson.loads(manifest.read_bytes()), "format": PARQUET_FORMAT - 1})
    )
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "command",
    [
        ("state", "--conversation", "incident"),
        ("usage",),
        ("replay", "audit"),
        ("archive", "restore", *NOWHERE),
        ("erase", "--conversation", "incident", *NOWHERE),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_what_an_earlier_version_wrote_is_named_and_left(run: Path, command: Sequence[str]) -> None:
    """Status 2 and one line, for a file and for a folder."""
    before = contents(run)
    for path, named, format_ in (
        (
            run / "standfast.duckdb",
            run / "standfast.duckdb",
            f"store format; this is {STORE_FORMAT}",
        ),
        (run / "export", run / "export" / "manifest.json", f"format; this is {PARQUET_FORMAT}"),
    ):
        refused = standfast(*command, "--db", path)
        assert refused.returncode == 2
        assert refused.stderr == f"standfast: {named}: written in another {format_}\n"
    assert contents(run) == before


def test_a_run_does_not_go_on_in_it(run: Path) -> None:
    """Nor is it begun anew: what it holds may stand nowhere else."""
    before = contents(run)
    refused = standfast("run", run / "in.jsonl", "--out", run)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert f"written in another store format; this is {STORE_FORMAT}" in refused.stderr
    assert contents(run) == before
