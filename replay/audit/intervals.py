"""Compares interval rows with those that folding gives again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import duckdb
import orjson

from processor.engine.conversation import Conversation
from replay.audit.rows import Key, LogRow, Rows
from replay.divergence import Divergence, Where, changed
from replay.index import observe
from replay.intervals import TABLES, Intervals, Row
from schemas.wire import canonical_bytes

_INDEXED = """
SELECT sequence, digest FROM indexed WHERE tenant_id = ? AND conversation_id = ?
"""
_FROM_TURN = 4
"""Where a row says since when it holds; before it stand the ids, a name and a place."""


def compare_intervals(connection: duckdb.DuckDBPyConnection, key: Key) -> Iterator[Divergence]:
    """The interval rows of a conversation whose log is sound; nothing if it was never indexed."""
    marks = connection.execute(_INDEXED, [*key]).fetchall()
    if not marks:
        if any(_stored(connection, table, key) for table in TABLES):
            yield Divergence(Where("indexed", *key), None, "is missing")
        return
    sequence, digest = marks[0]
    conversation, intervals = Conversation.empty(*key), Intervals(*key)
    for row in Rows(connection, LogRow, "log", [key], long=True).of(key):
        if row.sequence > sequence:
            break
        observe(intervals, conversation, row.event)
    where = Where("indexed", *key)
    if conversation.sequence != sequence:
        yield changed(where, "sequence", f"at most {conversation.sequence}", sequence)
        return
    if conversation.digest != digest:
        yield changed(where, "digest", conversation.digest, digest)
    if len(marks) > 1:
        yield Divergence(where, None, "stands twice")
    expected: dict[str, list[Row]] = {table: [] for table in TABLES}
    for table, values in intervals.rows():
        expected[table].append(values)
    for table in TABLES:
        columns = [name for name, *_ in connection.execute(f"DESCRIBE {table}").fetchall()]
        found = _stored(connection, table, key)
        yield from _compare(table, columns, expected[table], found)
    conversation.release()


def _stored(connection: duckdb.DuckDBPyConnection, table: str, key: Key) -> list[Row]:
    return connection.execute(
        f"SELECT * FROM {table} WHERE tenant_id = ? AND conversation_id = ?", [*key]
    ).fetchall()


def _compare(
    table: str, columns: Sequence[str], expected: Iterable[Row], found: Iterable[Row]
) -> Iterator[Divergence]:
    """Rows that one side has and the other has not, paired where they are nearly the same."""
    ours, theirs = _counted(expected), _counted(found)
    lacking = [_values(each) for each in (ours - theirs).elements()]
    strange = [_values(each) for each in (theirs - ours).elements()]
    for row in lacking:
        same = max(strange, key=partial(_alike, row), default=None)
        where = _where(table, row)
        if same is None or _alike(row, same) < len(columns) - 1:
            yield Divergence(where, None, f"{row[2]} is missing")
            continue
        strange.remove(same)
        for name, one, other in zip(columns, row, same, strict=True):
            if one != other:
                yield changed(where, name, one, other)
    for row in strange:
        yield Divergence(_where(table, row), None, f"{row[2]} is not in the log, or stands twice")


def _counted(rows: Iterable[Row]) -> Counter[bytes]:
    return Counter(map(canonical_bytes, rows))


def _values(written: bytes) -> Row:
    values: list[Any] = orjson.loads(written)
    return tuple(values)


def _alike(row: Row, other: Row) -> int:
    return sum(one == two for one, two in zip(row, other, strict=True))


def _where(table: str, row: Row) -> Where:
    return Where(table, row[0], row[1], turn=row[_FROM_TURN], place=row[3])
