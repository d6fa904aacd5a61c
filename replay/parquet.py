"""An archive as a folder of Parquet segments, which any number of processes may read.

A segment is written beside its place, synced and renamed, and never written again. What belongs to
the archive is said by its manifest alone, which is renamed into place last: an export that is
killed leaves the archive as it was. Rows that were exported before are not written again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated

import duckdb
from pydantic import Field, ValidationError

from replay.errors import StoreError
from replay.store_file import (
    SEALED_FORMAT,
    STORE_FORMAT,
    connect,
    first_line,
    is_sealed_store,
)
from schemas.contract import Contract, Count, Digest
from schemas.wire import canonical_bytes

MANIFEST = "manifest.json"
PARQUET_FORMAT = 1
NOBODY = "_none"
"""Stands for the tenant or day of a message that has none."""
_GROWING = {
    "messages": f"topic, coalesce(tenant_id, '{NOBODY}') AS tenant, "
    f"coalesce(strftime(timestamp, '%Y-%m-%d'), '{NOBODY}') AS day",
    "log": "tenant_id AS tenant, strftime(make_timestamp(epoch_us(said_at)), '%Y-%m-%d') AS day",
    "derived": "tenant_id AS tenant, type AS kind",
    "snapshots": "tenant_id AS tenant",
}
"""The tables that only grow, and into which folders their rows go."""
_WHOLE = ("store", "positions", "places", "copied", "gaps")
"""Tables that are written anew each time."""
_LAST = {
    "messages": "hash",
    "log": "record_hash",
    "derived": "event_id",
    "snapshots": "bytes_hash",
}
"""What tells the last row that was exported."""


class Segment(Contract):
    """One file: its path in the folder, the table whose rows it has, and its bytes' SHA-256."""

    path: Annotated[str, Field(max_length=1_024)]
    table: Annotated[str, Field(max_length=64)]
    bytes: Count
    sha256: Digest


class Exported(Contract):
    """How far a table was exported: its rows, and what the last of them has in one column."""

    rows: Count
    last: Annotated[str, Field(max_length=256)]


class Manifest(Contract):
    """What belongs to the archive."""

    format: Count
    store_format: Count
    exports: Count
    segments: tuple[Segment, ...]
    exported: dict[str, Exported]


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an archive. Raises StoreError if it is none, or of a newer version."""
    path = folder / MANIFEST
    try:
        stored = path.read_bytes()
    except FileNotFoundError as missing:
        raise StoreError(f"{folder}: not an archive: it has no {MANIFEST}") from missing
    except OSError as error:
        raise StoreError(f"{path}: cannot read: {error.strerror}") from error
    try:
        manifest = Manifest.model_validate_json(stored)
    except ValidationError as invalid:
        raise StoreError(f"{path}: not a manifest of format {PARQUET_FORMAT}") from invalid
    if manifest.format != PARQUET_FORMAT or manifest.store_format not in (
        STORE_FORMAT,
        SEALED_FORMAT,
    ):
        raise StoreError(f"{path}: written in another format; this is {PARQUET_FORMAT}")
    return manifest


def export(source: Path, folder: Path) -> int:
    """Add to a folder what a store or archive has and the folder has not; how many rows.

    Raises StoreError.
    """
    with closing(connect(source, read_only=True)) as connection:
        try:
            return _export(connection, source, folder)
        except duckdb.Error as error:
            raise StoreError(f"{source}: cannot export: {first_line(error)}") from error
        except OSError as error:
            raise StoreError(f"{folder}: cannot write: {error.strerror}") from error


def _export(connection: duckdb.DuckDBPyConnection, source: Path, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    store_format = SEALED_FORMAT if is_sealed_store(connection) else STORE_FORMAT
    empty = Manifest(
        format=PARQUET_FORMAT, store_format=store_format, exports=0, segments=(), exported={}
    )
    before = read_manifest(folder) if (folder / MANIFEST).exists() else empty
    if before.store_format != store_format:
        raise StoreError(f"{source}: is sealed and {folder} is not, or the other way round")
    number = before.exports + 1
    writing = folder / f".writing-{number}"
    shutil.rmtree(writing, ignore_errors=True)
    writing.mkdir()
    tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
    exported: dict[str, Exported] = {}
    rows = 0
    for table in _GROWING:
        if table in tables:
            last = before.exported.get(table, Exported(rows=0, last=""))
            exported[table] = _write_new(connection, table, last, writing, source)
            rows += exported[table].rows - last.rows
    for table in _WHOLE:
        if table in tables:
            (writing / table).mkdir()
            connection.execute(f"COPY {table} TO '{_quoted(writing / table)}/all.parquet'")
    kept = [segment for segment in before.segments if segment.table in _GROWING]
    added = list(_moved(writing, folder, number))
    manifest = before.model_copy(
        update={"exports": number, "segments": (*kept, *added), "exported": exported}
    )
    _put(folder / MANIFEST, canonical_bytes(manifest))
    shutil.rmtree(writing)
    for segment in before.segments:
        if segment.table in _WHOLE:
            (folder / segment.path).unlink(missing_ok=True)
    return rows


def _write_new(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    before: Exported,
    writing: Path,
    source: Path,
) -> Exported:
    """Write the rows that came after those that were exported."""
    told = _LAST[table]
    count, last, rowid = before.rows, before.last, -1
    if count:
        query = f"SELECT {told}, rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET ?"
        found = connection.execute(query, [count - 1]).fetchone()
        if found is None or found[0] != last:
            raise StoreError(
                f"{source}: is not what was exported into {writing.parent} before; name another"
            )
        rowid = found[1]
    columns = [name for name, *_ in connection.execute(f"DESCRIBE {table}").fetchall()]
    added = _GROWING[table]
    names = [part.rsplit(" ", 1)[-1] for part in added.split(", ") if " AS " in part]
    names = ["topic", *names] if table == "messages" else names
    listed = ", ".join(f'"{name}"' for name in columns)
    extra = added.removeprefix("topic, ")
    (writing / table).mkdir()
    connection.execute(
        f"COPY (SELECT {listed}, {extra} FROM {table} WHERE rowid > {rowid}) "
        f"TO '{_quoted(writing / table)}' (FORMAT parquet, PARTITION_BY ({', '.join(names)}), "
        "WRITE_PARTITION_COLUMNS true, OVERWRITE_OR_IGNORE true)"
    )
    query = f"SELECT count(*), arg_max({told}, rowid) FROM {table}"
    ((rows, newest),) = connection.execute(query).fetchall()
    return Exported(rows=rows, last=newest or "")


def _moved(writing: Path, folder: Path, number: int) -> Iterator[Segment]:
    """Sync the files of an export and rename each to its place."""
    for place, file in enumerate(sorted(writing.rglob("*.parquet"))):
        inside = file.relative_to(writing)
        path = folder / inside.with_name(f"{number:06}-{place:06}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
            os.fsync(opened.fileno())
            size = os.fstat(opened.fileno()).st_size
        file.rename(path)
        _sync_folder(path.parent)
        relative = path.relative_to(folder)
        yield Segment(path=str(relative), table=relative.parts[0], bytes=size, sha256=digest)


def _put(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".{path.name}")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
