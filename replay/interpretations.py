"""What the events of a store say about who interpreted them, and what that cost.

Both are read from the events as they were stored, so the sums are those of the log itself. A store
of a run, of a worker and an archive have the same log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, final

import duckdb

from replay.errors import StoreError
from replay.opened import opened
from replay.store_file import first_line
from schemas.log import Interpretation
from schemas.wire import decode_log_event

PAGE_EVENTS = 200

_EVENTS = "SELECT event FROM log ORDER BY tenant_id, conversation_id, sequence"
_USAGE = """
SELECT tenant_id, conversation_id, interpreter, coalesce(model, ''), count(*) AS utterances,
    sum(calls), sum(tokens_in), sum(tokens_out), sum(milliseconds)
FROM (
    SELECT tenant_id, conversation_id,
        said->>'$.interpreter' AS interpreter, said->>'$.model' AS model,
        CAST(said->>'$.attempts' AS BIGINT) AS calls,
        CAST(said->>'$.tokens_in' AS BIGINT) AS tokens_in,
        CAST(said->>'$.tokens_out' AS BIGINT) AS tokens_out,
        CAST(said->>'$.milliseconds' AS BIGINT) AS milliseconds
    FROM (SELECT *, CAST(decode(event) AS JSON)->'$.provenance' AS said FROM log)
    WHERE $1 IS NULL OR tenant_id = $1
)
WHERE calls > 0
GROUP BY ALL ORDER BY ALL
"""


@final
class Usage(NamedTuple):
    """What the readings of a conversation by one model cost; `model` is empty if none is named."""

    tenant_id: str
    conversation_id: str
    interpreter: str
    model: str
    utterances: int
    calls: int
    tokens_in: int
    tokens_out: int
    milliseconds: int


def usage_in(path: Path, tenant_id: str | None = None) -> list[Usage]:
    """What models were asked, in the order of tenants and conversations. Raises StoreError."""
    with _reading(path) as connection:
        rows = connection.execute(_USAGE, [tenant_id]).fetchall()
    return [Usage(*row[:4], *map(int, row[4:])) for row in rows]


def interpretations(path: Path) -> Iterator[Interpretation]:
    """Who interpreted each event of the log, in its order. Raises StoreError."""
    with _reading(path) as connection:
        result = connection.execute(_EVENTS)
        while rows := result.fetchmany(PAGE_EVENTS):
            for (event,) in rows:
                yield decode_log_event(event).provenance


@contextmanager
def _reading(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(opened(path)) as connection:
        try:
            yield connection
        except duckdb.Error as error:
            raise StoreError(f"{path}: cannot read: {first_line(error)}") from error
