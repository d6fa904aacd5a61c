"""The segments of an archive and the manifest that says which of them belong to it.

A segment is put whole into its place and never written again. What belongs to the archive is said
by the manifest alone, which is published last: whoever is killed before leaves the archive as it
was. Segments that were merged into others, or written anew, are retired: they stay for a while for
those who read by an older manifest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import duckdb
from pydantic import Field, ValidationError

from replay.errors import StoreError
from replay.segment_place import MANIFEST, SegmentPlace
from replay.store_file import SEALED_FORMAT, STORE_FORMAT
from schemas.contract import Contract, Count, Digest

PARQUET_FORMAT = 2
STORE_FORMATS = (STORE_FORMAT, SEALED_FORMAT)
NOBODY = "_none"
"""Stands for the tenant or day of a message that has none."""
_PARTS: dict[str, dict[str, str | None]] = {
    "messages": {
        "topic": None,
        "tenant": f"coalesce(tenant_id, '{NOBODY}')",
        "day": f"coalesce(strftime(timestamp, '%Y-%m-%d'), '{NOBODY}')",
    },
    "log": {
        "tenant": "tenant_id",
        "day": "strftime(make_timestamp(epoch_us(said_at)), '%Y-%m-%d')",
    },
    "derived": {"tenant": "tenant_id", "kind": "type"},
    "snapshots": {"tenant": "tenant_id"},
}
"""Into which folders the rows of a table go; None is a column that the table has."""
GROWING = tuple(_PARTS)
"""The tables that only grow."""
WHOLE = ("store", "positions", "places", "copied", "gaps")
"""Tables that are written anew each time."""
ROW_GROUP_ROWS = 8_192
"""What is held in memory while a segment is written."""
RETIRED_SECONDS = 3_600
"""How long a retired segment stays; who reads by a manifest should be done by then."""


class Segment(Contract):
    """One file: its path in the folder, the table whose rows it has, and its bytes' SHA-256."""

    path: Annotated[str, Field(max_length=1_024)]
    table: Annotated[str, Field(max_length=64)]
    bytes: Count
    sha256: Digest


class Retired(Contract):
    """A segment that belongs to the archive no more, and since when, in seconds since 1970."""

    path: Annotated[str, Field(max_length=1_024)]
    at: Count


class Exported(Contract):
    """How many rows of a table there are, and what the last that was exported has in one column."""

    rows: Count
    last: Annotated[str, Field(max_length=256)]


class Manifest(Contract):
    """What belongs to the archive."""

    format: Count
    store_format: Count
    exports: Count
    segments: tuple[Segment, ...]
    exported: dict[str, Exported]
    retired: tuple[Retired, ...] = ()


def nothing(store_format: int, tables: Iterable[str]) -> Manifest:
    """What an archive of these tables begins with."""
    return Manifest(
        format=PARQUET_FORMAT,
        store_format=store_format,
        exports=0,
        segments=(),
        exported={table: Exported(rows=0, last="") for table in tables if table in GROWING},
    )


def manifest_at(place: SegmentPlace, folder: Path) -> Manifest | None:
    """The manifest of an archive, None if there is none yet.

    Raises StoreError if it is no manifest, or of a newer version.
    """
    stored = place.manifest()
    if stored is None:
        return None
    path = folder / MANIFEST
    try:
        manifest = Manifest.model_validate_json(stored)
    except ValidationError as invalid:
        raise StoreError(f"{path}: not a manifest of format {PARQUET_FORMAT}") from invalid
    if manifest.format != PARQUET_FORMAT or manifest.store_format not in STORE_FORMATS:
        raise StoreError(f"{path}: written in another format; this is {PARQUET_FORMAT}")
    return manifest


def write_rows(
    connection: duckdb.DuckDBPyConnection, table: str, writing: Path, where: str = "true"
) -> None:
    """Write the rows of a growing table into unfinished segments, one for each folder of theirs."""
    columns = [f'"{name}"' for name, *_ in connection.execute(f"DESCRIBE {table}").fetchall()]
    parts = _PARTS[table]
    added = [f"{value} AS {name}" for name, value in parts.items() if value is not None]
    (writing / table).mkdir(parents=True)
    connection.execute(
        f"COPY (SELECT {', '.join([*columns, *added])} FROM {table} WHERE {where}) "
        f"TO '{quoted(writing / table)}' (FORMAT parquet, PARTITION_BY ({', '.join(parts)}), "
        f"WRITE_PARTITION_COLUMNS true, OVERWRITE_OR_IGNORE true, ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
    )


def write_whole(connection: duckdb.DuckDBPyConnection, table: str, writing: Path) -> None:
    """Write a small table into one unfinished segment."""
    (writing / table).mkdir(parents=True)
    connection.execute(f"COPY {table} TO '{quoted(writing / table)}/all.parquet'")


def put_all(place: SegmentPlace, writing: Path, number: int) -> Iterator[Segment]:
    """Put the segments of an export, or of a piece of it, into their places."""
    for count, file in enumerate(sorted(writing.rglob("*.parquet"))):
        inside = file.relative_to(writing).with_name(f"{number:06}-{count:06}.parquet")
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        size = file.stat().st_size
        place.put(str(inside), file)
        yield Segment(path=str(inside), table=inside.parts[0], bytes=size, sha256=digest)


def select_rows(locations: Iterable[str], described: Sequence[tuple[str, str]]) -> str:
    """A SELECT of a table's columns, given by name and type, from segments; there must be some."""
    columns = ", ".join(f'CAST("{name}" AS {kind}) AS "{name}"' for name, kind in described)
    listed = ", ".join(f"'{quoted(location)}'" for location in locations)
    return f"SELECT {columns} FROM read_parquet([{listed}], hive_partitioning = false)"


def described(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str]]:
    """Name and type of the columns of a table."""
    return [row[:2] for row in connection.execute(f"DESCRIBE {table}").fetchall()]


def quoted(path: Path | str) -> str:
    """As it stands between quotes in SQL."""
    return str(path).replace("'", "''")
