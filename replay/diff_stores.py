"""What differs between the logs of two stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, final

import duckdb

from replay.opened import opened

_HEADS = """
SELECT tenant_id, conversation_id, max(sequence), arg_max(digest, sequence)
FROM log GROUP BY ALL ORDER BY tenant_id, conversation_id
"""
_DIGESTS = """
SELECT sequence, digest FROM log WHERE tenant_id = ? AND conversation_id = ? ORDER BY sequence
"""


@final
class LogDiff(NamedTuple):
    """A conversation whose logs differ: how long they are, and the first event that differs.

    A length is 0 where a store does not have the conversation.
    """

    tenant_id: str
    conversation_id: str
    left_sequence: int
    right_sequence: int
    first_difference: int


def diff_stores(left: Path, right: Path) -> Iterator[LogDiff]:
    """The conversations whose logs differ, in order. Raises StoreError."""
    with closing(opened(left)) as ours, closing(opened(right)) as theirs:
        one, other = _heads(ours), _heads(theirs)
        for key in sorted({*one, *other}):
            ours_last, theirs_last = one.get(key, (0, "")), other.get(key, (0, ""))
            if ours_last != theirs_last:
                first = _first_difference(ours, theirs, key)
                yield LogDiff(*key, ours_last[0], theirs_last[0], first)


def _heads(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], tuple[int, str]]:
    rows = connection.execute(_HEADS).fetchall()
    return {(tenant, conversation): (last, digest) for tenant, conversation, last, digest in rows}


def _first_difference(
    left: duckdb.DuckDBPyConnection, right: duckdb.DuckDBPyConnection, key: tuple[str, str]
) -> int:
    ours = left.execute(_DIGESTS, [*key]).fetchall()
    theirs = right.execute(_DIGESTS, [*key]).fetchall()
    for place, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return place + 1
    return min(len(ours), len(theirs)) + 1
