"""An altered row of a store is named, or it cannot change an answer."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from processor.engine.snapshot import dump
from replay.errors import StoreError
from replay.reading import ConversationReader
from replay.store import Store
from tests.app.test_one_process import Json, run, statement

TURNS = (None, 1, 9, 12)
ALTERED = {
    "VARCHAR": "'x' || substr({0}, 2)",
    "BIGINT": "{0} + 1",
    "INTEGER": "{0} + 1",
    "TIMESTAMP WITH TIME ZONE": "{0} + INTERVAL 1 DAY",
    "BLOB": "from_hex(translate(hex({0}), '3', '4'))",
    "JSON": "replace({0}, 'o1', 'o2')::JSON",
}
COMMANDS = (
    ("state",),
    ("verify", "o3"),
    ("affected", "o1"),
    ("why", "o3"),
    ("history", "o1"),
    ("context",),
    ("holds", "o1"),
)


def said() -> list[Json | bytes]:
    """A conversation with a setup, statements, one that is not read, and drafts; and another."""
    setup = {**statement(0), "kind": "setup", "agents": [{"id": "ann"}]}
    del setup["operations"]
    unread = statement(9)
    del unread["operations"]
    first = [statement(number) for number in range(1, 9)]
    rest = [statement(number, premises=[]) for number in range(10, 13)]
    for line in rest:
        number = line["utterance_id"][1:]
        line["operations"] = [{"op": "observe", "record": f"o{number}", "claim": "seen"}]
        del line["premises"]
    draft = {**statement(99), "kind": "candidate", "claims": [{"text": "so", "record": "o3"}]}
    del draft["operations"]
    return [setup, *first, unread, *rest, draft, statement(1, conversation="d")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that nobody altered."""
    folder = tmp_path_factory.mktemp("whole")
    run(folder, said())
    return folder / "store.duckdb"


def answers(path: Path, conversation: str = "c") -> dict[int | None, bytes | None]:
    """What the store says of every turn; raises StoreError."""
    found = {}
    with Store(path, read_only=True) as store:
        for turn in TURNS:
            read = store.conversation_at("default", conversation, turn)
            found[turn] = None if read is None else dump(read)
    return found


def answer(reader: ConversationReader, turn: int | None) -> bytes | str | None:
    """What is read of a turn, or why it is not."""
    try:
        read = reader.at(turn)
    except StoreError as error:
        return str(error)
    return None if read is None else dump(read)


class Cell(NamedTuple):
    """One value of a table."""

    table: str
    row: int
    column: str
    kind: str


def cells(path: Path) -> list[Cell]:
    """Every value that a store keeps of conversation c, of derived events those at its end."""
    found = []
    with duckdb.connect(str(path), read_only=True) as connection:
        for table in ("log", "snapshots", "derived"):
            columns = connection.execute(f"DESCRIBE {table}").fetchall()
            rows = connection.execute(
                f"SELECT rowid FROM {table} WHERE conversation_id = 'c' "
                f"AND ('{table}' <> 'derived' OR sequence > 12)"
            ).fetchall()
            found += [Cell(table, row, str(c[0]), str(c[1])) for (row,) in rows for c in columns]
    return found


def alter(path: Path, statement: str, *parameters: object) -> None:
    """Change the file behind the store's back."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(statement, list(parameters))


def test_every_altered_value_is_named_or_does_not_matter(whole: Path, tmp_path: Path) -> None:
    """Whatever single value of a log, snapshot or derived row changes, no answer is wrong."""
    expected = answers(whole)
    shutil.copy(whole, path := tmp_path / "altered.duckdb")
    named = dict.fromkeys(("log", "snapshots", "derived"), 0)
    with duckdb.connect(str(path)) as connection:
        reader = ConversationReader(connection, path, "default", "c")
        for table, row, column, kind in cells(whole):
            connection.begin()
            value = ALTERED[kind].format(column)
            connection.execute(f"UPDATE {table} SET {column} = {value} WHERE rowid = {row}")
            for turn in TURNS:
                found = answer(reader, turn)
                if isinstance(found, str):
                    assert f"{path}: " in found
                    assert re.search(r"default/c at event \d|event \d+ of default/c", found)
                    named[table] += 1
                else:
                    assert found == expected[turn], (table, row, column, turn)
            connection.rollback()
    assert named["log"] > 50
    assert named["snapshots"] > 10
    assert named["derived"] > 0


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM log WHERE sequence = 14 AND conversation_id = 'c'",
        "DELETE FROM log WHERE sequence = 13 AND conversation_id = 'c'",
        "DELETE FROM log WHERE conversation_id = 'c'",
        "INSERT INTO log SELECT * FROM log WHERE sequence = 14",
    ],
)
def test_events_that_are_gone_or_twice_are_named(whole: Path, tmp_path: Path, change: str) -> None:
    """A log that was cut is not taken for a shorter one."""
    shutil.copy(whole, path := tmp_path / "cut.duckdb")
    alter(path, change)
    with pytest.raises(StoreError, match=r"event 1\d* of default/c"):
        answers(path)


def test_a_forged_event_with_its_own_hash_is_named(whole: Path, tmp_path: Path) -> None:
    """Bytes that fit their hash, but not the chain, are found out by folding them."""
    shutil.copy(whole, path := tmp_path / "forged.duckdb")
    with duckdb.connect(str(path)) as connection:
        (event,) = connection.execute(
            "SELECT event FROM log WHERE sequence = 14 AND conversation_id = 'c'"
        ).fetchall()[0]
    forged = event.replace(b'"o3"', b'"o4"')
    assert forged != event
    alter(
        path,
        "UPDATE log SET event = ?, record_hash = ? WHERE sequence = 14 AND conversation_id = 'c'",
        forged,
        hashlib.sha256(forged).hexdigest(),
    )
    with pytest.raises(StoreError, match=r"event 14 of default/c was altered: its digest"):
        answers(path)


@pytest.mark.parametrize(
    ("old", "new"), [(b'"seen"', b'"SEEN"'), (b'"records":', b'"rekords":'), (b"[", b"(")]
)
def test_a_forged_snapshot_with_its_own_hash_is_named(
    whole: Path, tmp_path: Path, old: bytes, new: bytes
) -> None:
    """A snapshot whose hash was made up too does not have the state digest of the log."""
    shutil.copy(whole, path := tmp_path / "forged.duckdb")
    with duckdb.connect(str(path)) as connection:
        (dumped,) = connection.execute(
            "SELECT conversation FROM snapshots WHERE sequence = 12"
        ).fetchall()[0]
    forged = zlib.compress(zlib.decompress(dumped).replace(old, new))
    alter(
        path,
        "UPDATE snapshots SET conversation = ?, bytes_hash = ? WHERE sequence = 12",
        forged,
        hashlib.sha256(forged).hexdigest(),
    )
    with pytest.raises(StoreError, match="snapshot of default/c at event 12 was altered"):
        answers(path)
    expected = answers(whole)
    alter(path, "DELETE FROM snapshots WHERE sequence = 12")
    assert answers(path) == expected


def told(*arguments: object) -> subprocess.CompletedProcess[str]:
    """What a command says, in a process of its own: it takes over the standard streams."""
    command = [sys.executable, "-m", "processor.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_every_query_names_what_was_altered_in_one_line(
    whole: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """A query on an altered event prints no answer, one line, and ends with status 2."""
    shutil.copy(whole, path := tmp_path / "altered.duckdb")
    alter(path, "UPDATE log SET digest = 'x' WHERE sequence = 14 AND conversation_id = 'c'")
    where: tuple[Any, ...] = ("--db", path, "--conversation", "c")
    refused = told(*command, *where)
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert f"{path}: event 14 of default/c was altered" in line
    assert told(*command, *where, "--turn", "10").returncode == 0


def test_a_run_that_meets_an_altered_event_keeps_the_others(whole: Path, tmp_path: Path) -> None:
    """What was processed before is written, and the altered conversation does not go on."""
    shutil.copy(whole, path := tmp_path / "store.duckdb")
    alter(path, "UPDATE log SET digest = 'x' WHERE sequence = 14 AND conversation_id = 'c'")
    with pytest.raises(StoreError, match="event 14 of default/c"):
        run(tmp_path, [statement(1, conversation="new"), statement(77)])
    assert answers(path, "new")[1] is not None
    with duckdb.connect(str(path), read_only=True) as connection:
        last = connection.execute("SELECT max(sequence) FROM log").fetchone()
    assert last == (14,)


def test_hiding_the_start_of_a_conversation_does_not_start_it_again(
    whole: Path, tmp_path: Path
) -> None:
    """A run on a log whose first event was altered away is refused."""
    shutil.copy(whole, path := tmp_path / "store.duckdb")
    alter(path, "UPDATE log SET sequence = 99 WHERE sequence = 1 AND conversation_id = 'c'")
    with pytest.raises(StoreError, match="default/c"):
        run(tmp_path, [statement(77)])
