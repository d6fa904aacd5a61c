"""Whether the parts of an archive or of a worker's store agree with each other."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import duckdb

from processor.evidence.fold import refusal_reason
from replay.audit.findings import Findings
from replay.audit.rows import Key
from replay.batch import Position, record_hash
from replay.divergence import Divergence, Where, changed, changed_json
from replay.reading import ConversationReader
from replay.sealing import opened_messages, stored_log
from schemas.log import LogEvent
from schemas.wire import WireError, decode_json, decode_log_event

OPERATIONS = "operations"

_NOT_IN_LOG = """
SELECT partition, "offset", value FROM {opened}
WHERE topic = 'operations' AND value IS NOT NULL
AND stored_hash NOT IN (SELECT record_hash FROM {log}) ORDER BY partition, "offset"
"""
_NOT_DERIVED = """
SELECT topic, partition, "offset", value FROM {opened}
WHERE (topic IN ('verdicts', 'retraction-impacts', 'context-updates')
       OR topic = 'ungrounded-alerts' OR starts_with(topic, 'ungrounded-alerts.'))
AND value IS NOT NULL
AND sha256(value) NOT IN (SELECT sha256(CAST(data AS VARCHAR)) FROM derived)
ORDER BY topic, partition, "offset"
"""
Offset = tuple[str, int, int]


def compare_positions(
    connection: duckdb.DuckDBPyConnection, unsure: Container[Offset]
) -> Iterator[Divergence]:
    """Up to where an archive was folded, with the messages before."""
    rows = connection.execute(
        "SELECT partition, next_offset, record_hash FROM positions"
    ).fetchall()
    for position in map(Position._make, rows):
        last = (OPERATIONS, position.partition, position.next_offset - 1)
        if last in unsure:
            continue
        found = connection.execute(
            'SELECT value FROM messages WHERE topic = ? AND partition = ? AND "offset" = ?',
            list(last),
        ).fetchone()
        if found is not None and record_hash(found[0] or b"") == position.record_hash:
            continue
        yield from _wrong_position(connection, position, found is not None)


def _wrong_position(
    connection: duckdb.DuckDBPyConnection, position: Position, exists: bool
) -> Iterator[Divergence]:
    """Which number of a position is wrong: its hash may name another message."""
    named = connection.execute(
        "SELECT partition, \"offset\" + 1 FROM messages WHERE topic = 'operations' "
        "AND sha256(coalesce(value, ''::BLOB)) = ? "
        'ORDER BY partition <> ?, "offset" DESC LIMIT 1',
        [position.record_hash, position.partition],
    ).fetchone()
    where = Where("positions", topic=OPERATIONS, partition=position.partition)
    if named is None:
        problem = "was changed" if exists else "names a message that is not there"
        yield Divergence(where, "record_hash" if exists else None, problem)
        return
    where = where._replace(partition=named[0])
    for name, expected, actual in zip(("partition", "next_offset"), named, position, strict=False):
        if expected != actual:
            yield changed(where, name, expected, actual)


def compare_places(connection: duckdb.DuckDBPyConnection) -> Iterator[Divergence]:
    """Where a worker's store says that its events stand in Kafka, with itself."""
    rows = connection.execute(
        "SELECT tenant_id, conversation_id, sequence, partition, next_offset, count(*) "
        "FROM places GROUP BY ALL HAVING count(*) > 1"
    ).fetchall()
    for *place, partition, offset, _ in rows:
        where = _in_places(place, partition, offset)
        yield Divergence(where, None, "stands twice")
    rows = connection.execute(
        "SELECT tenant_id, conversation_id, sequence, partition, next_offset FROM places "
        "ANTI JOIN log USING (tenant_id, conversation_id, sequence)"
    ).fetchall()
    for *place, partition, offset in rows:
        where = _in_places(place, partition, offset)
        yield Divergence(where, None, "is about an event that is not in the log")
    rows = connection.execute(
        "SELECT p.partition, max(p.next_offset), any_value(s.next_offset) FROM places p "
        "LEFT JOIN positions s USING (partition) GROUP BY p.partition "
        "HAVING any_value(s.next_offset) IS NULL OR any_value(s.next_offset) < max(p.next_offset)"
    ).fetchall()
    for partition, reached, told in rows:
        where = Where("positions", topic=OPERATIONS, partition=partition)
        yield Divergence(where, "next_offset", "is too low", "", f"at least {reached}", str(told))


def _in_places(place: list[Any], partition: int, next_offset: int) -> Where:
    tenant_id, conversation_id, sequence = place
    where = Where("places", tenant_id, conversation_id, sequence)
    return where._replace(topic=OPERATIONS, partition=partition, offset=next_offset - 1)


def compare_log(
    connection: duckdb.DuckDBPyConnection, path: Path, unsure: Container[Offset], known: Findings
) -> Iterator[Divergence]:
    """Every message of the log that was folded has its row; what was refused has none."""
    folded = dict(connection.execute("SELECT partition, next_offset FROM positions").fetchall())
    reported = {each.where[1:4] for each in known.divergences}
    log = stored_log(connection) or "log"
    query = _NOT_IN_LOG.format(opened=opened_messages(connection), log=log)
    if log == "log":
        query = query.replace("stored_hash", "sha256(value)")
    cursor = connection.cursor().execute(query)
    while row := cursor.fetchone():
        partition, offset, value = row
        if offset >= folded.get(partition, 0) or (OPERATIONS, partition, offset) in unsure:
            continue
        try:
            event = decode_log_event(value)
        except WireError:
            continue  # every reader skips it
        where = Where("log", event.tenant_id, event.conversation_id, event.sequence)
        if where[1:4] in reported or not _should_be_in(connection, path, event):
            continue
        told = f"operations/{partition} at offset {offset} has it"
        yield Divergence(where, None, f"is missing: {told}")


def _should_be_in(connection: duckdb.DuckDBPyConnection, path: Path, event: LogEvent) -> bool:
    """Whether an event that the log does not have would fit at its end."""
    key: Key = (event.tenant_id, event.conversation_id)
    row = connection.execute(
        "SELECT max(sequence) FROM log WHERE tenant_id = ? AND conversation_id = ?", [*key]
    ).fetchone()
    last = 0 if row is None or row[0] is None else row[0]
    if event.sequence != last + 1:
        return False
    if last == 0:
        return True
    conversation = ConversationReader(connection, path, *key).at(None)
    return conversation is not None and refusal_reason(conversation, event) is None


def compare_sent(
    connection: duckdb.DuckDBPyConnection,
    unsure: Container[Offset],
    behind: Container[int],
    known: Findings,
) -> Iterator[Divergence]:
    """Verdicts, impacts, alerts and updates as they were sent, with those that the log gives.

    `behind` are partitions whose log is not folded to its end: there the log may give them yet.
    What is known to be wrong in the log or in what came of it is not told again.
    """
    reported = {each.where[1:4] for each in known.divergences}
    query = _NOT_DERIVED.format(opened=opened_messages(connection))
    cursor = connection.cursor().execute(query)
    while row := cursor.fetchone():
        *at, value = row
        if tuple(at) in unsure or at[1] in behind:
            continue
        where = Where("messages", topic=at[0], partition=at[1], offset=at[2])
        try:
            told = decode_json(value)
        except WireError:
            told = None
        if not isinstance(told, dict):
            yield Divergence(where, "value", "is no event")
            continue
        if (told.get("tenant_id"), told.get("conversation_id"), told.get("sequence")) in reported:
            continue
        found = connection.execute(
            "SELECT data FROM derived WHERE event_id = ? LIMIT 1", [told.get("event_id")]
        ).fetchone()
        if found is None:
            yield Divergence(where, "value", "was not derived from the log")
        else:
            yield changed_json(where, "value", found[0].encode(), value.decode())
