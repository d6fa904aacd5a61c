"""What DuckDB may hold in memory; left alone, it keeps most of what it wrote there.

Writing takes several times what is written. And a checkpoint holds the values of one vector of a
column, 2,048 rows, at a time, all of them, also those of megabytes: if the limit has no room for
them DuckDB fails for good. So the largest vector and the largest batch raise the limit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar, final

import duckdb

BATCH_BYTES_MAX = 4 * 1024 * 1024
DUCKDB_BYTES_MIN = 64 * 1024 * 1024
VECTOR_ROWS = 2_048
READ_LIMITS_MIB = (1_024, 2_048, 4_096, 8_192)
"""In a file every value is read with the vector it is in, so a limit may be too low for one row.
The last has room for a vector of the largest messages, which grows by doubling."""
_NARROWER = 8
_NARROW = 100
_ROW_GROUP_ROWS = 60 * VECTOR_ROWS
_SIZES = {
    "log": "octet_length(event)",
    "derived": "strlen(data)",
    "snapshots": "size",
    "messages": "coalesce(octet_length(value), 0)",
}
"""The bytes of a row, in the tables whose rows may be large."""


Answer = TypeVar("Answer")


@final
class ReadInPieces:
    """How many rows are read at once: fewer, and then with more memory, where that does not fit.

    Segments need no more memory, since a few of their rows are read without the others.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, rows: int) -> None:
        self.rows = rows
        self._connection = connection
        query = "SELECT 1 FROM duckdb_tables() WHERE table_name = 'messages' LIMIT 1"
        is_file = connection.execute(query).fetchone() is not None
        ((now,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
        self._limits = [each for each in READ_LIMITS_MIB if is_file and each > _mebibytes(now)]

    def read(self, piece: Callable[[int], Answer]) -> Answer:
        """What a query of so many rows answers. Raises duckdb.Error."""
        while True:
            try:
                return piece(self.rows)
            except duckdb.OutOfMemoryException:
                if self._limits and self.rows <= _NARROW:
                    self._connection.execute(f"SET memory_limit = '{self._limits.pop(0)}MiB'")
                elif self.rows > 1:
                    self.rows = max(1, self.rows // _NARROWER)
                else:
                    raise


def _mebibytes(size: str) -> float:
    """Of a size as DuckDB writes it, such as `1.7 GiB`."""
    number, _, unit = size.partition(" ")
    return float(number) * 1_024.0 ** (("KiB", "MiB", "GiB", "TiB").index(unit) - 1)


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
