"""Values that were changed at random places of an archive are found, and located."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import duckdb
import pytest

from replay.audit.run import audit
from replay.divergence import Divergence
from tests.audit.stores import make_archive
from tests.replay.test_tampering import Cell
from tests.strategies_streams import seeded_stream

ALTERED = 56
ALTERED_THOROUGH = 400
TOGETHER = (frozenset({"event", "record_hash"}), frozenset({"conversation", "bytes_hash"}))
"""Bytes and their hash: which of the two was changed cannot always be told."""
KEYS = {
    "log": ("tenant_id", "conversation_id", "sequence"),
    "derived": ("tenant_id", "conversation_id", "sequence", "place"),
    "snapshots": ("tenant_id", "conversation_id", "sequence"),
    "messages": ("topic", "partition", "offset"),
    "copied": ("topic", "partition"),
    "gaps": ("topic", "partition"),
    "positions": ("partition",),
}


class Altered(NamedTuple):
    """A value that was changed: where it stood, and the row's place before and after."""

    table: str
    column: str
    before: tuple[Any, ...]
    after: tuple[Any, ...]


def cells(path: Path) -> list[Cell]:
    """Every value of an archive, but for the number of its format."""
    found: list[Cell] = []
    with duckdb.connect(str(path), read_only=True) as connection:
        for table in KEYS:
            columns = [row[:2] for row in connection.execute(f"DESCRIBE {table}").fetchall()]
            rows = connection.execute(f"SELECT rowid FROM {table}").fetchall()
            found += [Cell(table, row, name, kind) for (row,) in rows for name, kind in columns]
    return found


def other_text(text: str, chance: Random) -> str:
    """The same with another letter or digit at a random place; something, if there was nothing."""
    places = [place for place, character in enumerate(text) if character.isalnum()]
    if not places:
        return f"{text}x"
    place = chance.choice(places)
    other = chance.choice([each for each in "0123456789abcdef" if each != text[place]])
    return text[:place] + other + text[place + 1 :]


def other_value(value: Any, kind: str, chance: Random) -> Any:
    """Another value of a column of this kind."""
    if value is None:
        return b"x" if kind == "BLOB" else "x"
    if kind == "BLOB":
        place = chance.randrange(len(value)) if value else 0
        return value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :] if value else b"x"
    if kind in ("BIGINT", "INTEGER"):
        return value + chance.choice([-1, 1, 2, 40])
    if kind.startswith("STRUCT"):
        return [*value, {"name": "x", "value": b"y"}]
    return other_text(value, chance)


def alter(connection: duckdb.DuckDBPyConnection, cell: Cell, chance: Random) -> Altered:
    """Change one value of a file."""
    table, row, column, kind = cell
    keys = ", ".join(f'"{key}"' for key in KEYS[table])
    place = f"SELECT {keys} FROM {table} WHERE rowid = {row}"
    (before,) = connection.execute(place).fetchall()
    other: Any = None
    if kind == "TIMESTAMP WITH TIME ZONE":
        to = f"coalesce({column} + INTERVAL 1 SECOND, TIMESTAMPTZ '2026-03-01 00:00:00+00')"
        connection.execute(f"UPDATE {table} SET {column} = {to} WHERE rowid = {row}")
    else:
        query = f'SELECT "{column}" FROM {table} WHERE rowid = {row}'
        ((value,),) = connection.execute(query).fetchall()
        other = other_value(value, kind, chance)
        if kind == "JSON":  # bytes that are no JSON cannot be put there
            while not connection.execute("SELECT json_valid(?)", [other]).fetchall()[0][0]:
                other = other_value(value, kind, chance)
        connection.execute(f'UPDATE {table} SET "{column}" = ? WHERE rowid = {row}', [other])
    after = [
        other if key == column else value for key, value in zip(KEYS[table], before, strict=True)
    ]
    return Altered(table, column, before, tuple(after))


def is_located(divergence: Divergence, changed: Altered) -> bool:
    """Whether a divergence is about the row that was changed, and about that column."""
    where, table = divergence.where, changed.table
    place = tuple(getattr(where, key) for key in KEYS[table])
    columns = {changed.column, divergence.column}
    return (
        where.table == table
        and place in (changed.before, changed.after)
        and (None in columns or len(columns) == 1 or columns in TOGETHER)
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive that nobody altered."""
    path = tmp_path_factory.mktemp("whole") / "archive.duckdb"
    make_archive(path, seeded_stream(1, 40))
    assert audit(path).divergences == []
    return path


def chosen(all_cells: list[Cell], count: int, chance: Random) -> Iterator[Cell]:
    """As many of each table, whatever its size."""
    for number in range(count):
        table = tuple(KEYS)[number % len(KEYS)]
        yield chance.choice([cell for cell in all_cells if cell.table == table])


def check(whole: Path, folder: Path, count: int, chance: Random) -> None:
    """Change so many values, one in each copy; each is reported at its row and nowhere else."""
    copy = folder / "altered.duckdb"
    for cell in chosen(cells(whole), count, chance):
        shutil.copy(whole, copy)
        with duckdb.connect(str(copy)) as connection:
            changed = alter(connection, cell, chance)
        found = audit(copy).divergences
        assert found, changed
        assert all(is_located(each, changed) for each in found), (changed, found)


def test_every_altered_value_is_found_and_located(whole: Path, tmp_path: Path) -> None:
    """Values changed at random places are each reported at their row and nowhere else."""
    check(whole, tmp_path, ALTERED, Random(11))


@pytest.mark.thorough
def test_of_many_altered_values_every_one_is_found(whole: Path, tmp_path: Path) -> None:
    """The same for some hundreds."""
    check(whole, tmp_path, ALTERED_THOROUGH, Random(12))
