"""Opens what holds a history to be read: a store, or an archive as a file or as a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import duckdb

from replay.divergence import Divergence, Where
from replay.errors import StoreError
from replay.sealing import add_views, required, vault_for
from replay.segments import Manifest, described, quoted, select_rows
from replay.segments_found import read_manifest, segment_folder
from replay.store_file import (
    SEALED_FORMAT,
    connect,
    create_statements,
    first_line,
    is_sealed_store,
    view_statements,
)


def opened(path: Path, manifest: Manifest | None = None) -> duckdb.DuckDBPyConnection:
    """A connection in which the tables of a store can be asked. Raises StoreError.

    Of segments it has what the manifest names, by default the newest, whatever is published later.
    """
    if not path.is_dir():
        connection = connect(path, read_only=True)
        return _unsealed(connection, path) if is_sealed_store(connection) else connection
    manifest = manifest or read_manifest(path)
    is_archive = "messages" in manifest.exported
    is_sealed = manifest.store_format == SEALED_FORMAT
    vault = required(vault_for(path), path) if is_sealed else None
    connection = duckdb.connect()
    try:
        connection.execute("SET TimeZone = 'UTC'")
        if vault is not None:
            connection.execute("CREATE SCHEMA stored; USE stored")
        for table, statement in create_statements(is_archive=is_archive):
            _define(connection, segment_folder(path), manifest, table, statement)
        if vault is not None:
            stand_for_tables(connection, "stored.")
            add_views(connection, vault, "stored.", temporary=False, is_archive=is_archive)
        for statement in view_statements():
            connection.execute(statement)
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"{path}: cannot read: {first_line(error)}") from error
    return connection


def pinned(path: Path, *, anew: bool = False) -> Manifest | None:
    """What segments hold now, for several connections that are to see the same of it.

    Of a bucket all of it is fetched again if it is wanted `anew`, whatever is known already.
    """
    return read_manifest(path, anew=anew) if path.is_dir() else None


def _unsealed(sealed: duckdb.DuckDBPyConnection, path: Path) -> duckdb.DuckDBPyConnection:
    """A connection of its own with views on a sealed file; cursors of it have them too."""
    sealed.close()
    vault = required(vault_for(path), path)
    connection = duckdb.connect()
    try:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"ATTACH '{quoted(path.absolute())}' AS stored (READ_ONLY)")
        is_archive = stand_for_tables(connection, "stored.main.")
        add_views(connection, vault, "stored.main.", temporary=False, is_archive=is_archive)
        for statement in view_statements():
            connection.execute(statement)
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"{path}: cannot open: {first_line(error)}") from error
    return connection


def stand_for_tables(connection: duckdb.DuckDBPyConnection, stored: str) -> bool:
    """Let every table of a sealed store be found by its name; whether it is an archive's."""
    connection.execute("USE memory.main")
    catalog, _, schema = stored.rstrip(".").partition(".")
    where = f"database_name = '{catalog}'" if schema else f"schema_name = '{catalog}'"
    found = connection.execute(
        f"SELECT table_name FROM duckdb_tables() WHERE {where} UNION "
        f"SELECT view_name FROM duckdb_views() WHERE {where} AND NOT internal"
    ).fetchall()
    ours = {table for table, _ in create_statements(is_archive=True)}
    tables = sorted({name for (name,) in found} & ours)
    for table in tables:
        connection.execute(f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM {stored}{table}")
    return "messages" in tables


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
            with (segment_folder(path) / segment.path).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise StoreError(f"{path / segment.path}: cannot read: {error.strerror}") from error
        if digest != segment.sha256:
            yield Divergence(where, None, "was changed", "", segment.sha256, digest)
