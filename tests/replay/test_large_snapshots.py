"""DuckDB is kept small, but not too small for a large conversation."""

from __future__ import annotations

from pathlib import Path

import duckdb

from replay.batch import BATCH_BYTES_MAX, DUCKDB_BYTES_MIN, Batch, MemoryLimit
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


def test_an_empty_batch_takes_nothing() -> None:
    """A batch that holds nothing says so."""
    batch = Batch()
    assert batch.is_empty()
    assert batch.bytes == 0
