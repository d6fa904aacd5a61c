"""Opens what holds a history to be read: a store, or an archive as a file or as a folder."""

from __future__ import annotations

from pathlib import Path

import duckdb

from replay.store_file import connect


def opened(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection in which the tables of a store can be asked. Raises StoreError."""
    return connect(path, read_only=True)
