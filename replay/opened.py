"""Opens what holds a history to be read: a store, or an archive as a file or as a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import duckdb

from replay.divergence import Divergence, Where
from replay.errors import StoreError
from replay.segments import Manifest, described, read_manifest, select_rows
from replay.store_file import connect, create_statements, first_line, view_statements


def opened(path: Path, manifest: Manifest | None = None) -> duckdb.DuckDBPyConnection:
    """A connection in which the tables of a store can be asked. Raises StoreError.

    Of a folder it has what the manifest names, by default the newest, whatever is published later.
    """
    if not path.is_dir():
        return connect(path, read_only=True)
    manifest = manifest or read_manifest(path)
    connection = duckdb.connect()
    try:
        connection.execute("SET TimeZone = 'UTC'")
        for table, statement in create_statements(is_archive="messages" in manifest.exported):
            _define(connection, path, manifest, table, statement)
        for statement in view_statements():
            connection.execute(statement)
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"{path}: cannot read: {first_line(error)}") from error
    return connection


def pinned(path: Path) -> Manifest | None:
    """What a folder holds now, for several connections that are to see the same of it."""
    return read_manifest(path) if path.is_dir() else None


def _define(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    manifest: Manifest,
    table: str,
    statement: str,
) -> None:
    """Let a table be the rows of its segments; an empty one if it has none."""
    files = [str(folder / segment.path) for segment in manifest.segments if segment.table == table]
    connection.execute(statement)
    if not files:
        return
    chosen = select_rows(files, described(connection, table))
    connection.execute(f"DROP TABLE {table}")
    connection.execute(f"CREATE VIEW {table} AS {chosen}")


def compare_segments(path: Path, manifest: Manifest | None) -> Iterator[Divergence]:
    """The segments of a folder whose bytes are not those that were written; nothing for a file."""
    if manifest is None:
        return
    for segment in manifest.segments:
        where = Where(f"segment {segment.path}")
        try:
            with (path / segment.path).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise StoreError(f"{path / segment.path}: cannot read: {error.strerror}") from error
        if digest != segment.sha256:
            yield Divergence(where, None, "was changed", "", segment.sha256, digest)
