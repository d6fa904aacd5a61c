"""What DuckDB may hold in memory; left alone, it keeps most of what it wrote there.

Writing takes several times what is written. And a checkpoint holds the values of one vector of a
column, 2,048 rows, at a time, all of them, also those of megabytes: if the limit has no room for
them DuckDB fails for good. So the largest vector and the largest batch raise the limit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, final

import duckdb

BATCH_BYTES_MAX = 4 * 1024 * 1024
DUCKDB_BYTES_MIN = 64 * 1024 * 1024
VECTOR_ROWS = 2_048
_ROW_GROUP_ROWS = 60 * VECTOR_ROWS
_SIZES = {
    "log": "octet_length(event)",
    "derived": "strlen(data)",
    "snapshots": "size",
    "messages": "coalesce(octet_length(value), 0)",
}
"""The bytes of a row, in the tables whose rows may be large."""


@final
class Amount(NamedTuple):
    """How much is written to a table."""

    table: str
    rows: int
    bytes: int


@final
class MemoryLimit:
    """The limit of one connection. Every method raises duckdb.Error."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        connection.execute("SET threads = 1")  # each more would keep buffers of its own
        self._bytes = 0
        self._last: dict[str, deque[Amount]] = {}
        tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        largest = max(self._largest_vector(table) for table in _SIZES if table in tables)
        rows = connection.execute("SELECT coalesce(max(size), 0) FROM snapshots").fetchall()
        self.make_room(rows[0][0])
        self._raise(DUCKDB_BYTES_MIN + 2 * largest)

    def make_room(self, written: int, amounts: Iterable[Amount] = ()) -> None:
        """Let so many bytes be written or read at once, and these amounts of them be kept."""
        self._raise(DUCKDB_BYTES_MIN + 4 * max(0, written - BATCH_BYTES_MAX))
        for amount in amounts:
            last = self._last.setdefault(amount.table, deque())
            last.append(amount)
            while sum(each.rows for each in last) - last[0].rows >= VECTOR_ROWS:
                last.popleft()
            self._raise(DUCKDB_BYTES_MIN + 2 * sum(each.bytes for each in last))

    def _largest_vector(self, table: str) -> int:
        """Of those that the next checkpoint may write again."""
        rows = self._connection.execute(
            f"SELECT coalesce(max(total), 0) FROM (SELECT sum({_SIZES[table]}) AS total "
            f"FROM {table} WHERE rowid >= (SELECT max(rowid) FROM {table}) - {_ROW_GROUP_ROWS} "
            f"GROUP BY rowid // {VECTOR_ROWS})"
        ).fetchall()
        return int(rows[0][0])

    def _raise(self, needed: int) -> None:
        if needed > self._bytes:
            self._bytes = needed
            self._connection.execute(f"SET memory_limit = '{needed}B'")
