"""The alerts of a conversation behind a place in its log, as far as a store has them.

A place is the sequence of a log event and the order among what came of it. The last place of a page
that is the last one is the end of what is folded, so that who comes again with it has missed
nothing.
"""

from __future__ import annotations

from typing import NamedTuple, final

import duckdb

from schemas.derived import UngroundedAlert
from schemas.http import PLACE_MAX
from schemas.wire import decode_derived_event

ALERT_BYTES_MAX = 4 * 1024 * 1024
"""How much one page tells; its first alert is told however long it is."""
_KIND = UngroundedAlert.TYPE
_REACH = """
SELECT min(sequence), max(sequence) FROM log WHERE tenant_id = ? AND conversation_id = ?
"""
_SIZES = """
SELECT sequence, place, strlen(data) FROM derived
WHERE tenant_id = ? AND conversation_id = ? AND type = ?
  AND (sequence > ? OR (sequence = ? AND place > ?))
ORDER BY sequence, place LIMIT ?
"""
_ALERTS = """
SELECT sequence, place, data FROM derived
WHERE tenant_id = ? AND conversation_id = ? AND type = ?
  AND (sequence > ? OR (sequence = ? AND place > ?))
  AND (sequence < ? OR (sequence = ? AND place <= ?))
ORDER BY sequence, place
"""


@final
class AlertPlace(NamedTuple):
    """A log event, and one of the derived events that came of it."""

    sequence: int
    place: int


@final
class AlertPage(NamedTuple):
    """Some alerts with their places; `since` is where the next page begins.

    Not `is_whole`: the store has not all of them, begins at `since`, and none is told.
    """

    alerts: tuple[tuple[AlertPlace, UngroundedAlert], ...]
    since: AlertPlace
    is_last: bool
    is_whole: bool


def alerts_since(
    connection: duckdb.DuckDBPyConnection,
    tenant_id: str,
    conversation_id: str,
    since: AlertPlace,
    most: int,
    folded: int,
) -> AlertPage:
    """At most so many alerts behind a place.

    `folded` is the sequence up to which the conversation is folded, for one that came with a
    checkpoint and has no log here.
    """
    conversation = (tenant_id, conversation_id)
    first, last = connection.execute(_REACH, [*conversation]).fetchall()[0]
    end = AlertPlace(folded if last is None else last, PLACE_MAX)
    begin = AlertPlace((folded if first is None else first - 1), PLACE_MAX)
    if begin.sequence > 0 and since < begin:
        return AlertPage((), begin, is_last=False, is_whole=False)
    behind = (*conversation, _KIND, since.sequence, since.sequence, since.place)
    sizes = connection.execute(_SIZES, [*behind, most + 1]).fetchall()
    upto = _fitting(sizes[:most])
    if upto is None:
        return AlertPage((), max(since, end), is_last=True, is_whole=True)
    until = (upto.sequence, upto.sequence, upto.place)
    alerts = tuple(
        (AlertPlace(sequence, place), _alert(data))
        for sequence, place, data in connection.execute(_ALERTS, [*behind, *until]).fetchall()
    )
    is_last = len(alerts) == len(sizes)
    return AlertPage(alerts, max(upto, end) if is_last else upto, is_last=is_last, is_whole=True)


def _fitting(sizes: list[tuple[int, int, int]]) -> AlertPlace | None:
    """The place of the last alert that fits into a page."""
    told, upto = 0, None
    for sequence, place, size in sizes:
        told += size
        if upto is not None and told > ALERT_BYTES_MAX:
            break
        upto = AlertPlace(sequence, place)
    return upto


def _alert(data: str) -> UngroundedAlert:
    alert = decode_derived_event(_KIND, data.encode())
    assert isinstance(alert, UngroundedAlert)
    return alert
