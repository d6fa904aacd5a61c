"""DuckDB is kept small, but not too small for a large conversation."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb

from replay.batch import Batch
from replay.memory_limit import BATCH_BYTES_MAX, DUCKDB_BYTES_MIN, Amount, MemoryLimit
from replay.store import Store


def limit(connection: duckdb.DuckDBPyConnection) -> str:
    """The limit as DuckDB says it."""
    rows = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    return str(rows[0][0])


def test_a_snapshot_larger_than_the_limit_is_written_and_read(tmp_path: Path) -> None:
    """The limit grows with what is written, and is found again when the file is opened again."""
    path = tmp_path / "store.duckdb"
    Store(path).__exit__(None, None, None)
    dumped = b"x" * DUCKDB_BYTES_MIN
    with duckdb.connect(str(path)) as connection:
        memory = MemoryLimit(connection)
        low = limit(connection)
        memory.make_room(BATCH_BYTES_MAX)
        assert limit(connection) == low
        memory.make_room(len(dumped))
        connection.execute(
            "INSERT INTO snapshots VALUES ('t', 'c', 1, 1, 1, '', ?, '', ?)", [len(dumped), dumped]
        )
        connection.execute("CHECKPOINT")
    with duckdb.connect(str(path)) as connection:
        MemoryLimit(connection)
        assert limit(connection) != low
        rows = connection.execute("SELECT octet_length(conversation) FROM snapshots").fetchall()
    assert rows == [(len(dumped),)]


def test_many_large_rows_in_a_row_are_written(tmp_path: Path) -> None:
    """A checkpoint holds all of 2,048 rows at once; also after the file was opened again."""
    path = tmp_path / "store.duckdb"
    Store(path).__exit__(None, None, None)
    events = 0
    for _ in range(2):
        with duckdb.connect(str(path)) as connection:
            memory = MemoryLimit(connection)
            for _ in range(20):
                rows = [[random.randbytes(1_000_000)] * 4]
                memory.make_room(4_000_000, [Amount("log", 4, 4_000_000)])
                connection.execute(
                    "INSERT INTO log SELECT 't', 'c', 1, 1, '', '', '', now(), 1, '', '', '', "
                    "unnest(?)",
                    rows,
                )
                events += 4
            connection.execute("CHECKPOINT")
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT count(*) FROM log").fetchall() == [(events,)]


def test_an_empty_batch_takes_nothing() -> None:
    """A batch that holds nothing says so."""
    batch = Batch()
    assert batch.is_empty()
    assert batch.bytes == 0
