"""An untouched store is clean; rows that are gone, twice or swapped, and raw damage, are found."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import duckdb
import orjson
import pytest

from processor.engine.rules_version import CURRENT_RULES
from replay.audit.run import BATCH_EVENTS, audit
from replay.divergence import first_difference
from replay.errors import StoreError
from replay.index import index
from replay.store import Store
from tests.app.test_one_process import run
from tests.audit import many_turns
from tests.audit.stores import execute, make_archive
from tests.benchmarks.conversations import utterances
from tests.replay.test_store import standfast
from tests.strategies_streams import seeded_stream

TABLES = ("log", "derived", "snapshots", "messages", "copied", "gaps", "positions")
FLIPS = 40


def said(count: int, conversations: int) -> list[dict[str, object] | bytes]:
    """A benchmark conversation, several times over."""
    return [
        {**each, "conversation_id": f"c{number}"}
        for number in range(conversations)
        for each in utterances(count)
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run leaves: two conversations of forty turns."""
    folder = tmp_path_factory.mktemp("store")
    run(folder, said(40, 2))
    return folder / "store.duckdb"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of several conversations."""
    path = tmp_path_factory.mktemp("archive") / "archive.duckdb"
    make_archive(path, seeded_stream(2, 40))
    return path


def found(whole: Path, folder: Path, *statements: str) -> list[str]:
    """What an audit says of a copy that was changed."""
    shutil.copy(whole, path := folder / "copy.duckdb")
    execute(path, statements)
    return [each.line() for each in audit(path).divergences]


def test_an_untouched_store_is_clean(store: Path) -> None:
    """Every event is folded again and nothing differs; it says which rules wrote what."""
    report = audit(store)
    assert report.divergences == []
    assert (report.conversations, report.turns, report.not_folded) == (2, 80, 0)
    assert report.rules == {CURRENT_RULES: 80}


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    """With two processes the report is that of one, sound conversations and bad ones."""
    run(tmp_path, said(300, 8))
    path = tmp_path / "store.duckdb"
    execute(path, ["UPDATE log SET speaker = 'eve' WHERE sequence % 100 = 7"])
    alone, together = audit(path, jobs=1), audit(path, jobs=2)
    assert alone == together
    assert len(alone.divergences) == 24


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM log WHERE sequence = 20 AND conversation_id = 'c1'", "sequence 20"),
        ("DELETE FROM log WHERE sequence = 40 AND conversation_id = 'c1'", "sequence 40"),
        ("DELETE FROM log WHERE sequence = 1 AND conversation_id = 'c1'", "sequence 1"),
        (
            "DELETE FROM derived WHERE sequence = 20 AND conversation_id = 'c1' AND place = 0",
            "derived, default/c1, sequence 20, turn 20, place 0: is missing",
        ),
        (
            "INSERT INTO log SELECT * FROM log WHERE sequence = 20 AND conversation_id = 'c1'",
            "log, default/c1, sequence 20, turn 20: stands twice",
        ),
        (
            "INSERT INTO derived SELECT * FROM derived "
            "WHERE sequence = 9 AND conversation_id = 'c1' AND place = 0",
            "derived, default/c1, sequence 9, turn 9, place 0: does not come",
        ),
        (
            "INSERT INTO snapshots SELECT * FROM snapshots "
            "WHERE sequence = 12 AND conversation_id = 'c1'",
            "snapshots, default/c1, sequence 12, turn 12: stands twice",
        ),
    ],
)
def test_a_row_that_is_gone_or_twice_is_located(
    store: Path, tmp_path: Path, change: str, told: str
) -> None:
    """One row deleted, or put there twice, is one divergence at its place."""
    (line,) = found(store, tmp_path, change)
    assert told in line


def test_a_swapped_pair_is_located(store: Path, tmp_path: Path) -> None:
    """Two events that changed places are told as that, each at the place where it belongs."""
    swap = "UPDATE log SET sequence = 41 - sequence WHERE sequence IN (20, 21) AND {}"
    lines = found(store, tmp_path, swap.format("conversation_id = 'c1'"))
    assert lines == [
        "log, default/c1, sequence 20, column sequence: was changed: expected 20, found 21",
        "log, default/c1, sequence 21, column sequence: was changed: expected 21, found 20",
    ]


def test_a_cut_tail_of_an_archive_is_found(archive: Path, tmp_path: Path) -> None:
    """The log and all that came of it may be cut away: the message that it came in is there."""
    last = "conversation_id = 'c1' AND tenant_id = 'acme' AND sequence = (SELECT max(sequence) "
    last += "FROM log WHERE conversation_id = 'c1' AND tenant_id = 'acme')"
    with duckdb.connect(str(archive), read_only=True) as connection:
        sequence = connection.execute(f"SELECT sequence FROM log WHERE {last}").fetchone()
    assert sequence is not None
    cut = f"tenant_id = 'acme' AND conversation_id = 'c1' AND sequence = {sequence[0]}"
    lines = found(
        archive, tmp_path, f"DELETE FROM derived WHERE {cut}", f"DELETE FROM log WHERE {cut}"
    )
    assert [line for line in lines if f"log, acme/c1, sequence {sequence[0]}: is missing" in line]


def test_messages_that_are_gone_are_told_by_their_offsets(archive: Path, tmp_path: Path) -> None:
    """Offsets of an archive are contiguous: one that holds nothing is missing."""
    lines = found(
        archive, tmp_path, "DELETE FROM messages WHERE topic = 'verdicts' AND \"offset\" = 1"
    )
    assert lines
    assert all("offset 1: is missing" in line for line in lines)


def test_what_follows_a_bad_event_is_checked_from_the_next_snapshot(
    store: Path, tmp_path: Path
) -> None:
    """Behind an event that cannot be folded, a second change is found all the same."""
    lines = found(
        store,
        tmp_path,
        "DELETE FROM log WHERE sequence = 13 AND conversation_id = 'c0'",
        "UPDATE derived SET turn = 99 WHERE sequence = 30 AND conversation_id = 'c0'",
    )
    assert lines[0] == "log, default/c0, sequence 13, turn 12: is missing"
    assert all("sequence 30" in line and "column turn" in line for line in lines[1:])
    assert len(lines) > 1


def test_the_first_differing_path_is_told(store: Path, tmp_path: Path) -> None:
    """A changed value inside of a derived event is told by its path, with both values."""
    lines = found(
        store,
        tmp_path,
        "UPDATE derived SET data = replace(data, '\"applied\":[0', '\"applied\":[9') "
        "WHERE sequence = 7 AND conversation_id = 'c1' AND place = 0",
    )
    (line,) = lines
    assert line.endswith("column data: was changed at applied.0: expected 0, found 9")
    assert first_difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}) == ("a.1.b", 2, 3)


INTERVALS = (
    ("record_versions", "standing = 'weakened'", "place = 7"),
    ("record_versions", "to_turn = 2", "place = 0 AND from_turn = 1"),
    ("record_versions", "claim = 'x'", "place = 3"),
    ("link_versions", "support = 'r9.9'", "record = 'r3.1' AND place = 0"),
    ("attack_versions", "attacker = 'x'", "place = 0"),
    ("indexed", "digest = 'x'", "true"),
)


@pytest.mark.parametrize(("table", "change", "which"), INTERVALS)
def test_altered_interval_rows_are_located(
    store: Path, tmp_path: Path, table: str, change: str, which: str
) -> None:
    """What `replay index` wrote is compared with the log as everything else is."""
    shutil.copy(store, path := tmp_path / "indexed.duckdb")
    with Store(path) as opened:
        index(opened)
    assert audit(path).divergences == []
    execute(path, [f"UPDATE {table} SET {change} WHERE conversation_id = 'c1' AND {which}"])
    found = audit(path).divergences
    assert found
    assert {(each.where.table, each.where.conversation_id) for each in found} == {(table, "c1")}
    assert {each.column for each in found} == {change.split(" ")[0]}


def contents(path: Path) -> dict[str, list[str]]:
    """All rows of an archive."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return {
            table: sorted(map(str, connection.execute(f"FROM {table}").fetchall()))
            for table in TABLES
        }


@pytest.mark.parametrize("count", [FLIPS, pytest.param(400, marks=pytest.mark.thorough)])
def test_raw_flips_are_never_clean_if_a_row_is_affected(
    archive: Path, tmp_path: Path, count: int
) -> None:
    """After a byte of the file is flipped, the audit complains, or every row is as it was."""
    whole = archive.read_bytes()
    rows = contents(archive)
    chance = Random(count)
    path = tmp_path / "flipped.duckdb"
    complaints = 0
    for _ in range(count):
        place = chance.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            is_clean = not audit(path).divergences
        except StoreError:
            is_clean = False
        complaints += not is_clean
        assert not is_clean or contents(path) == rows
    assert complaints > count // 4


def test_the_command_says_it_and_ends_with_its_status(store: Path, tmp_path: Path) -> None:
    """Status 0 and a summary if it is clean, 1 and each divergence if not, 2 if it is no store."""
    clean = standfast("replay", "audit", "--db", store, "--jobs", "1")
    assert (clean.returncode, clean.stderr) == (0, b"")
    written = f"rules version {CURRENT_RULES}: 80 events\nno divergence\n"
    assert clean.stdout.decode().endswith(written)
    shutil.copy(store, path := tmp_path / "copy.duckdb")
    execute(path, ["UPDATE log SET speaker = 'eve' WHERE sequence = 3"])
    bad = standfast("replay", "audit", "--db", path, "--json")
    told = orjson.loads(bad.stdout)
    assert (bad.returncode, len(told["divergences"])) == (1, 2)
    assert told["divergences"][0]["where"]["sequence"] == 3
    first = standfast("replay", "audit", "--db", path, "--json", "--fail-fast")
    assert (first.returncode, orjson.loads(first.stdout)["complete"]) == (1, False)
    missing = standfast("replay", "audit", "--db", tmp_path / "none.duckdb")
    assert (missing.returncode, missing.stdout) == (2, b"")
    assert missing.stderr.count(b"\n") == 1


def test_fifty_thousand_turns_are_clean(tmp_path: Path) -> None:
    """An archive of fifty thousand turns has no divergence, and how far the audit is is told."""
    many_turns.make(path := tmp_path / "archive.duckdb", 50_000)
    told: list[int] = []
    report = many_turns.check(path, 50_000, told.append)
    assert sum(told) == report.events + report.messages
    assert max(told[:10]) <= BATCH_EVENTS


@pytest.mark.thorough
def test_a_million_turns_are_clean(tmp_path: Path) -> None:
    """The same of a million; `python -m tests.audit.many_turns` shows how far it is."""
    many_turns.make(path := tmp_path / "archive.duckdb", 1_000_000)
    many_turns.check(path, 1_000_000)
