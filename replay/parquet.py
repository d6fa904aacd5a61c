"""Exports a store or an archive into segments, which any number of processes may read.

Rows that were exported before are not written again.
"""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import duckdb

from replay.bucket import Bucket
from replay.errors import StoreError
from replay.segment_place import LocalFolder
from replay.segments import (
    GROWING,
    WHOLE,
    Exported,
    nothing,
    write_rows,
    write_whole,
)
from replay.segments_found import begun, place_of
from replay.segments_kept import publish, unknown
from replay.store_file import SEALED_FORMAT, STORE_FORMAT, connect, first_line, is_sealed_store

_LAST = {
    "messages": "hash",
    "log": "record_hash",
    "derived": "event_id",
    "snapshots": "bytes_hash",
}
"""What tells the last row that was exported."""


def export(source: Path, folder: Path) -> int:
    """Add to a folder what a store or archive has and the folder has not; how many rows.

    Raises StoreError.
    """
    with closing(connect(source, read_only=True)) as connection:
        place = place_of(folder)
        try:
            with place.writing() as writing:
                return _export(connection, source, folder, place, writing)
        except duckdb.Error as error:
            raise StoreError(f"{source}: cannot export: {first_line(error)}") from error
        except OSError as error:
            raise StoreError(f"{folder}: cannot write: {error.strerror}") from error


def _export(
    connection: duckdb.DuckDBPyConnection,
    source: Path,
    folder: Path,
    place: LocalFolder | Bucket,
    writing: Path,
) -> int:
    store_format = SEALED_FORMAT if is_sealed_store(connection) else STORE_FORMAT
    tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
    before = begun(place, folder, nothing(store_format, tables))
    if before.store_format != store_format:
        raise StoreError(f"{source}: is sealed and {folder} is not, or the other way round")
    for name in unknown(before, place.names()):
        place.delete(name)
    exported: dict[str, Exported] = {}
    rows = 0
    for table in GROWING:
        if table in tables:
            last = before.exported.get(table, Exported(rows=0, last=""))
            exported[table] = _write_new(connection, table, last, writing, source, folder)
            rows += exported[table].rows - last.rows
    for table in WHOLE:
        if table in tables:
            write_whole(connection, table, writing)
    old = [segment for segment in before.segments if segment.table in WHOLE]
    publish(place, before, old, writing, exported, int(time.time()))
    return rows


def _write_new(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    before: Exported,
    writing: Path,
    source: Path,
    folder: Path,
) -> Exported:
    """Write the rows that came after those that were exported."""
    told = _LAST[table]
    count, last, rowid = before.rows, before.last, -1
    if count:
        query = f"SELECT {told}, rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET ?"
        found = connection.execute(query, [count - 1]).fetchone()
        if found is None or found[0] != last:
            raise StoreError(
                f"{source}: is not what was exported into {folder} before; name another"
            )
        rowid = found[1]
    write_rows(connection, table, writing, f"rowid > {rowid}")
    query = f"SELECT count(*), arg_max({told}, rowid) FROM {table}"
    ((rows, newest),) = connection.execute(query).fetchall()
    return Exported(rows=rows, last=newest or "")
