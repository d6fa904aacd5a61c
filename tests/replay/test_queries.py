"""The queries that analysts are shown run, and answer what the scenario holds."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

import replay
from tests.audit.stores import make_archive
from tests.cli.test_surroundings import is_one_line
from tests.replay.test_store import standfast

README = Path(str(replay.__file__)).with_name("README.md")
QUERIES = re.findall(r"```sql\n(.*?)```", README.read_text(), re.DOTALL)
NAME = "incident-with-candidates"
EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "alerts_by_day": [("default", date(2026, 3, 10), 9)],
    "decisions_without_ground": [(NAME, "h4", "ungrounded", "o5", 14, "revise", "e14", "alice")],
    "depended_on": [
        (NAME, "h4", "resolved", 2),
        (NAME, "o6", "active", 2),
        (NAME, "o8", "active", 2),
        (NAME, "e13", "active", 1),
        (NAME, "e6", "active", 1),
        (NAME, "h3", "active", 1),
        (NAME, "o5", "abandoned", 1),
        (NAME, "o7", "active", 1),
        (NAME, "o8'", "active", 1),
        (NAME, "o9", "active", 1),
    ],
    "withdrawal_to_alert": [
        (NAME, "c07a", "h2", 0, 60.0),
        (NAME, "c09a", "h2", 2, 240.0),
        (NAME, "c09a", "h2", 2, 240.0),
        (NAME, "c13a", "h2", 6, 720.0),
        (NAME, "c14a", "o5", 0, 60.0),
        (NAME, "c14a", "o5", 0, 60.0),
        (NAME, "h4", "o5", 0, 0.0),
    ],
    "interpretations": [("default", "native", None, 27, 0, 0, 0)],
}


@pytest.fixture(scope="module", params=["run", "archive"])
def indexed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scenario as a run's store and as an archive of its topics, with interval rows."""
    folder = tmp_path_factory.mktemp("indexed")
    source = Path("processor/scenarios", f"{NAME}.jsonl")
    path = folder / "standfast.duckdb"
    if request.param == "run":
        assert standfast("run", source, "--out", folder).returncode == 0
    else:
        make_archive(path, [orjson.loads(line) for line in source.read_bytes().splitlines()])
    assert standfast("replay", "index", "--db", path).stdout == b"1 conversations indexed\n"
    return path


def test_each_view_has_its_query() -> None:
    """The page shows five queries, one on each view."""
    assert len(QUERIES) == 5
    assert all(any(f"FROM {view}" in query for query in QUERIES) for view in EXPECTED)


@pytest.mark.parametrize("view", EXPECTED)
def test_a_query_of_the_page_answers(indexed: Path, view: str) -> None:
    """With nothing but DuckDB, a query gives the rows that follow from the scenario."""
    (query,) = (query for query in QUERIES if f"FROM {view}" in query)
    with duckdb.connect(str(indexed), read_only=True) as connection:
        assert connection.execute(query).fetchall() == EXPECTED[view]


def test_indexing_what_is_not_there_is_one_line(tmp_path: Path) -> None:
    """A store that does not exist is status 2, and none is made."""
    done = standfast("replay", "index", "--db", tmp_path / "none.duckdb")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_sealed_store_has_no_interval_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its keys too, indexing it is one line that says how to ask instead."""
    assert standfast("keys", "create", tmp_path / "keys.jsonl", "--id", "a").returncode == 0
    monkeypatch.setenv("STANDFAST_KEY_FILE", str(tmp_path / "keys.jsonl"))
    source = f"processor/scenarios/{NAME}.jsonl"
    assert standfast("run", source, "--out", tmp_path).returncode == 0
    ran = standfast("replay", "index", "--db", tmp_path / "standfast.duckdb")
    assert is_one_line(ran, "is sealed", "--turn")
