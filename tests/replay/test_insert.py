"""What is inserted is what is read back, whatever the values are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.batch import insert

TABLE = """CREATE TABLE "rows" (
    "order" BIGINT, text VARCHAR, "at" TIMESTAMPTZ, is_so BOOLEAN, share DOUBLE, ids VARCHAR[],
    event BLOB, data JSON
)"""
EARLY, LATE = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
ODD = ["", "\x00", "a\x00b", '"', "\\u0000", "\u2028", "\ud7ff", "\U0010ffff", "null", "'; --"]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(ODD)
row = st.tuples(
    *(
        st.none() | each
        for each in (
            st.integers(-(2**63), 2**63 - 1),
            texts,
            st.datetimes(timezones=st.just(UTC)) | st.sampled_from([EARLY, LATE]),
            st.booleans(),
            st.floats(allow_nan=False, allow_infinity=False),
            st.lists(texts, max_size=3),
            st.binary(max_size=8),
            st.sampled_from(['{"a":1}', '"\\u0000"', "null", '["x"]', "1.0"]),
        )
    )
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory with the table."""
    with duckdb.connect() as opened:
        opened.execute("SET TimeZone = 'UTC'")
        opened.execute(TABLE)
        yield opened


@given(st.lists(row, max_size=5))
def test_values_come_back_as_they_were(
    connection: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]]
) -> None:
    """Nulls, ends of ranges and hostile text included, in their order."""
    connection.execute("DELETE FROM rows")
    insert(connection, "rows", [list(column) for column in zip(*rows, strict=True)] or [[]] * 8)
    assert connection.execute("SELECT * FROM rows").fetchall() == rows


def test_a_row_that_is_there_is_left_out(connection: duckdb.DuckDBPyConnection) -> None:
    """By the columns that are named; a zone makes no other time of one."""
    connection.execute("DELETE FROM rows")
    here = timezone(timedelta(hours=2))
    noon, again = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 14, tzinfo=here)
    rest: tuple[Any, ...] = (True, 0.5, ["a"], b"\xff", '{"a":1}')
    insert(connection, "rows", [[each] for each in (1, "t", noon, *rest)])
    columns: list[list[Any]] = [[1, 2], ["other", "t"], [again] * 2, *([each] * 2 for each in rest)]
    insert(connection, "rows", columns, '"order", "at"')
    query = """SELECT "order", text, "at", (data->>'$.a')::INTEGER FROM rows ORDER BY 1"""
    assert connection.execute(query).fetchall() == [(1, "t", noon, 1), (2, "t", noon, 1)]


def test_what_does_not_fit_its_column_is_an_error(connection: duckdb.DuckDBPyConnection) -> None:
    """It does not become null without a word."""
    columns: list[list[Any]] = [["no number"], *([None] for _ in range(7))]
    with pytest.raises(duckdb.Error, match="no number"):
        insert(connection, "rows", columns)
