"""Damage to the file of a store: an error with a name, or the right answer."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from pathlib import Path

import duckdb
import orjson
import pytest

from processor.engine.snapshot import dump
from replay.errors import StoreError
from replay.store import Store
from tests.app.test_one_process import run
from tests.benchmarks.conversations import utterances

TURNS = 30
HEADERS_BYTES = 12_288
Damage = Callable[[bytearray, random.Random], None]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that nothing has happened to."""
    folder = tmp_path_factory.mktemp("sound")
    run(folder, list(utterances(TURNS)))
    return folder / "store.duckdb"


def answers(path: Path) -> list[bytes] | None:
    """The conversation at two turns, or None if the store is refused."""
    found = []
    try:
        with Store(path, read_only=True) as store:
            for turn in (None, 7):
                conversation = store.conversation_at("default", "bench", turn)
                found.append(b"" if conversation is None else dump(conversation))
    except (StoreError, duckdb.Error):
        return None
    return found


def _flip(content: bytearray, chance: random.Random) -> None:
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def _flip_in_headers(content: bytearray, chance: random.Random) -> None:
    content[chance.randrange(HEADERS_BYTES)] ^= 1 << chance.randrange(8)


def _flip_many(content: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randrange(2, 200)):
        _flip(content, chance)


def _blank(content: bytearray, chance: random.Random) -> None:
    start, size = chance.randrange(len(content)), chance.choice([8, 512, 4_096, 100_000])
    content[start : start + size] = bytes(len(content[start : start + size]))


def _cut(content: bytearray, chance: random.Random) -> None:
    del content[chance.randrange(len(content)) :]


@pytest.mark.parametrize("damage", [_flip, _flip_in_headers, _flip_many, _blank, _cut])
def test_damaged_bytes_are_refused_or_do_no_harm(
    tmp_path: Path, sound: Path, damage: Damage
) -> None:
    """DuckDB's checksums find what matters; nothing else comes through and nothing hangs."""
    right = answers(sound)
    assert right is not None
    chance = random.Random(damage.__name__)
    for _ in range(12):
        content = bytearray(sound.read_bytes())
        damage(content, chance)
        (tmp_path / "store.duckdb").write_bytes(content)
        assert answers(tmp_path / "store.duckdb") in (None, right)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE log",
        "DROP TABLE snapshots",
        "DROP TABLE store",
        "ALTER TABLE derived RENAME TO other",
        "ALTER TABLE log DROP COLUMN record_hash",
        "ALTER TABLE log RENAME COLUMN sequence TO place",
        "ALTER TABLE log ALTER event TYPE VARCHAR",
        "ALTER TABLE snapshots ALTER conversation TYPE VARCHAR",
        "ALTER TABLE log ALTER sequence TYPE VARCHAR",
        "DELETE FROM store",
    ],
)
def test_another_layout_is_refused(tmp_path: Path, sound: Path, statement: str) -> None:
    """Tables and columns that are missing or of another type are seen when the store is opened."""
    path = tmp_path / "store.duckdb"
    path.write_bytes(sound.read_bytes())
    with duckdb.connect(str(path)) as connection:
        for view in ("turns", "verdicts", "retraction_impacts", "ungrounded_alerts"):
            connection.execute(f"DROP VIEW {view}")
        connection.execute(statement)
    with pytest.raises(StoreError):
        Store(path, read_only=True)
    with pytest.raises(StoreError):
        Store(path)


@pytest.mark.parametrize("key", ["records", "utterances", "roles", "updates", "problems"])
@pytest.mark.parametrize("value", [None, [[1]], "missing"])
def test_a_snapshot_that_cannot_be_read_is_named(
    tmp_path: Path, sound: Path, key: str, value: object
) -> None:
    """Its bytes are not those that were stored; without it the log gives the same answer."""
    path = tmp_path / "store.duckdb"
    path.write_bytes(sound.read_bytes())
    with duckdb.connect(str(path)) as connection:
        rows = connection.execute("SELECT sequence, conversation FROM snapshots").fetchall()
        for sequence, conversation in rows:
            fields = orjson.loads(zlib.decompress(conversation))
            if value == "missing":
                del fields[key]
            else:
                fields[key] = value
            connection.execute(
                "UPDATE snapshots SET conversation = ? WHERE sequence = ?",
                [zlib.compress(orjson.dumps(fields)), sequence],
            )
    with Store(path, read_only=True) as store:
        (tenant_id, conversation_id, _), *_ = store.conversations()
        with pytest.raises(StoreError, match="snapshot"):
            store.conversation(tenant_id, conversation_id)
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM snapshots")
    assert answers(path) == answers(sound)


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """A file without content holds nothing that could be lost."""
    (tmp_path / "store.duckdb").touch()
    run(tmp_path, list(utterances(2)))
    assert answers(tmp_path / "store.duckdb") is not None


def test_the_write_ahead_log_of_a_store_that_is_gone_is_not_applied(
    tmp_path: Path, sound: Path
) -> None:
    """A new store begins empty, whatever lies beside it."""
    (tmp_path / "store.duckdb.wal").write_bytes(sound.read_bytes())
    run(tmp_path, list(utterances(2)))
    found = answers(tmp_path / "store.duckdb")
    assert found is not None
    assert found[1] == b""
