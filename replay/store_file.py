"""The file of a store: made whole or not at all, and watched while it is written."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import final

import duckdb

from processor.vault.errors import KeysAwayError
from replay.errors import KeysNotThereError, StoreBusyError, StoreError

STORE_FORMAT = 5
SEALED_FORMAT = 6
"""Of a store whose rows are sealed: the same tables, which say little without the keys."""
_LOCKED = "Could not set lock on file"
"""How DuckDB says that another process has the file open."""
_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+) \((.*?)\n\);", re.DOTALL)
_VIEW = "CREATE OR REPLACE VIEW"
_COLUMN = re.compile(r"^ +(\w+) ([\w ]+) NOT NULL", re.MULTILINE)


def connect(
    path: Path, *, read_only: bool, new_format: int = STORE_FORMAT
) -> duckdb.DuckDBPyConnection:
    """Open the file, made first if need be, and make sure that it is a store of this format.

    What is sealed in it is read as it stands there.
    """
    try:
        os.fsencode(path).decode()
        found = path.stat()
    except UnicodeDecodeError as error:
        raise StoreError(f"{path}: the name of a store must be UTF-8") from error
    except FileNotFoundError as missing:
        if read_only:
            raise StoreError(f"{path}: no such file") from missing
        found = None
    except OSError as error:
        raise StoreError(f"{path}: cannot open: {error.strerror}") from error
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path}: not a regular file")
    if found is not None and found.st_size and not _is_duckdb(path):
        raise StoreError(f"{path}: not a standfast store")
    if not read_only and (found is None or found.st_size == 0):
        _create(path, new_format)
    try:
        connection = _open(path, read_only=read_only)
    except duckdb.Error as error:
        kind = StoreBusyError if _LOCKED in str(error) else StoreError
        raise kind(f"{path}: cannot open: {first_line(error)}") from error
    try:
        _refuse_other_format(path, connection)
    except duckdb.Error as error:
        connection.close()
        raise StoreError(f"{path}: cannot read: {first_line(error)}") from error
    except StoreError:
        connection.close()
        raise
    return connection


def _is_duckdb(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except OSError as error:
        raise StoreError(f"{path}: cannot open: {error.strerror}") from error


def first_line(error: duckdb.Error) -> str:
    """What DuckDB says is wrong, without its advice; what a vault says, without DuckDB's."""
    _, is_away, problem = str(error).partition(f"{KeysAwayError.__name__}: ")
    if is_away:
        return problem.strip().splitlines()[0]
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def unreadable(path: Path, error: duckdb.Error) -> StoreError:
    """Why something of a store was not read: it is damaged, or its keys are away."""
    if f"{KeysAwayError.__name__}: " in str(error):
        return KeysNotThereError(f"{path}: {first_line(error)}")
    return StoreError(f"{path}: cannot read: {first_line(error)}")


@final
class Watch:
    """Sees what DuckDB does not: that the file it writes is no longer there, or no longer whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = path.stat()

    def check(self) -> None:
        """Raise StoreError if anybody but us removed, replaced or cut the file."""
        if self._look().st_size < self._last.st_size:
            raise StoreError(f"{self._path}: was cut short by another program")

    def renew(self) -> None:
        """We wrote it ourselves, so it may be shorter. Raises StoreError if it is not the same."""
        self._last = self._look()

    def _look(self) -> os.stat_result:
        try:
            now = self._path.stat()
        except OSError as error:
            raise StoreError(f"{self._path}: was taken away: {error.strerror}") from error
        if (now.st_dev, now.st_ino) != (self._last.st_dev, self._last.st_ino):
            raise StoreError(f"{self._path}: was replaced by another program")
        return now


def _open(path: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    """A connection; the path is absolute so that DuckDB takes no part of it for a protocol."""
    name = os.fsencode(path.absolute()).decode()
    connection = duckdb.connect(name, read_only=read_only)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _create(path: Path, new_format: int) -> None:
    """Make an empty store, under another name until it is whole: no failure leaves half of one."""
    try:
        with tempfile.TemporaryDirectory(prefix=".standfast-", dir=path.parent) as folder:
            fresh = Path(folder) / path.name
            with _open(fresh, read_only=False) as connection:
                connection.begin()
                connection.execute(_schema())
                connection.execute(_sql("views"))
                connection.execute("INSERT INTO store VALUES (?)", [new_format])
                connection.commit()
                connection.execute("CHECKPOINT")  # closing does the same, but hides its failure
            _put(fresh, path)
    except OSError as error:
        raise StoreError(f"{path}: cannot create: {error.strerror}") from error
    except duckdb.Error as error:
        raise StoreError(f"{path}: cannot create: {first_line(error)}") from error


def _put(fresh: Path, path: Path) -> None:
    """Give a store its name, unless another process was quicker: that one may have it open."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if path.exists() and path.stat().st_size:
            return
        path.with_name(f"{path.name}.wal").unlink(missing_ok=True)  # of a store that is gone
        fresh.rename(path)
    finally:
        os.close(folder)


def _refuse_other_format(path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
    if "store" not in tables:
        raise StoreError(f"{path}: not a standfast store")
    row = connection.execute("SELECT format FROM store").fetchone()
    if row is None or row[0] not in (STORE_FORMAT, SEALED_FORMAT):
        raise StoreError(f"{path}: written in another store format; this is {STORE_FORMAT}")
    for table, columns in _columns().items():
        if table not in tables:
            raise StoreError(f"{path}: damaged: it has no table {table}")
        described = connection.execute(f"DESCRIBE {table}").fetchall()
        if [(name, kind) for name, kind, *_ in described] != columns:
            raise StoreError(f"{path}: damaged: table {table} has other columns")


def is_sealed_store(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the rows of the store are sealed."""
    ((found,),) = connection.execute("SELECT format FROM store").fetchall()
    return bool(found == SEALED_FORMAT)


def create_statements(*, is_archive: bool) -> list[tuple[str, str]]:
    """Each table and how it is made."""
    schema = _schema() + (_sql("archive") if is_archive else "")
    return [(match.group(1), match.group(0)) for match in _TABLE.finditer(schema)]


def view_statements() -> list[str]:
    """How the views are made, on tables or on views that stand for them."""
    schema = _schema()
    return [schema[schema.index(_VIEW) :], _sql("views")]


def _schema() -> str:
    return _sql("schema")


def _sql(name: str) -> str:
    return (files("replay") / "sql" / f"{name}.sql").read_text()


@cache
def _columns() -> dict[str, list[tuple[str, str]]]:
    """Name and type of every column of every table, as the schema has them."""
    return {table: _COLUMN.findall(body) for table, body in _TABLE.findall(_schema())}
