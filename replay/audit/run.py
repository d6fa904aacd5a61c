"""Audits a whole store or archive, in as many processes as asked for."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, final

import duckdb

from replay.anchor import compare_with_anchor
from replay.archive_batch import Place
from replay.audit.agreement import (
    compare_places,
)
from replay.audit.archive import compare_archive, partitions
from replay.audit.conversation import ConversationRows, audit_conversation
from replay.audit.derived import settle
from replay.audit.erased import audit_erased
from replay.audit.findings import Findings
from replay.audit.intervals import compare_intervals
from replay.audit.messages import (
    MessageFindings,
    audit_partition,
)
from replay.audit.rows import (
    DerivedRow,
    Key,
    LogRow,
    Rows,
    SnapshotRow,
    conversations,
    every_log_row,
    has_own_hash,
    read_event,
)
from replay.divergence import Divergence
from replay.errors import StoreError
from replay.opened import compare_segments, opened, pinned
from replay.sealing import stored_log
from replay.segments import Manifest
from replay.store_file import first_line

BATCH_EVENTS = 5_000
"""Of several short conversations, handed to a process at once."""
_MEMORY_LIMIT = "512MB"
"""Of DuckDB, in each process."""
_HAS_INDEX = "SELECT 1 FROM duckdb_tables() WHERE table_name = 'indexed'"
IN_ONE_PROCESS_EVENTS = 2_000
"""A store with fewer is audited before another process has started."""


@final
class Source(NamedTuple):
    """What is audited; of a folder as it was when the audit began, however it grows meanwhile."""

    path: Path
    manifest: Manifest | None


@final
class Batch(NamedTuple):
    """Conversations to be audited at once; a long one comes alone."""

    keys: tuple[Key, ...]
    events: int


@final
@dataclass(slots=True)
class AuditReport:
    """What an audit found; `complete` is false if it stopped at the first divergence."""

    divergences: list[Divergence] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    conversations: int = 0
    events: int = 0
    turns: int = 0
    messages: int = 0
    not_folded: int = 0
    rules: Counter[int] = field(default_factory=Counter)
    complete: bool = True

    def view(self) -> dict[str, object]:
        """As a JSON value."""
        return {
            "divergences": [each.view() for each in self.divergences],
            "notes": self.notes,
            "conversations": self.conversations,
            "events": self.events,
            "turns": self.turns,
            "messages": self.messages,
            "not_folded": self.not_folded,
            "rules_versions": {str(version): self.rules[version] for version in sorted(self.rules)},
            "complete": self.complete,
        }


def audit(
    path: Path,
    *,
    jobs: int | None = None,
    fail_fast: bool = False,
    anchor: Path | None = None,
    on_events: Callable[[int], None] = lambda _: None,
) -> AuditReport:
    """Fold every log of a store again and compare everything that it holds with that.

    `anchor` is a file of heads that the logs must have; see `replay.anchor`. `on_events` is told
    how many more events were dealt with. Raises StoreError if something cannot be read.
    """
    source = Source(path, pinned(path, anew=True))
    with closing(_connect(source)) as connection, _readable(path):
        tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        found = conversations(connection)
        report = AuditReport(conversations=len(found))
        findings, messages = Findings(), MessageFindings()
        places = partitions(connection) if "messages" in tables else []
        for result in _results(source, connection, _batches(found), places, jobs):
            if isinstance(result, Findings):
                findings.absorb(result)
                on_events(result.events)
            else:
                messages.absorb(result)
                on_events(result.messages)
            if fail_fast and (findings.divergences or messages.divergences):
                report.complete = False
                break
        if report.complete:
            audit_erased(connection, findings)
        findings.divergences += settle(findings.missing, findings.strays) if report.complete else []
        if report.complete:
            findings.divergences += compare_segments(path, source.manifest)
            findings.divergences += compare_places(connection)
            if anchor is not None:
                findings.divergences += compare_with_anchor(connection, anchor)
            if "messages" in tables:
                messages.divergences += compare_archive(connection, path, findings, messages)
    _tell(report, findings, messages)
    return report


def _tell(report: AuditReport, findings: Findings, messages: MessageFindings) -> None:
    told = dict.fromkeys([*findings.divergences, *messages.divergences])
    report.divergences = sorted(told, key=lambda each: _order(each))
    report.notes = sorted(findings.notes)
    report.events, report.turns = findings.events, findings.turns
    report.messages, report.not_folded = messages.messages, findings.not_folded
    report.rules = findings.rules


def _order(divergence: Divergence) -> tuple[tuple[bool, str | int], ...]:
    where = divergence.where
    names = (where.tenant_id, where.conversation_id, where.sequence, where.table, where.place)
    places = (where.topic, where.partition, where.offset, divergence.column)
    return tuple((value is not None, value if value is not None else 0) for value in names + places)


# -- in several processes ---------------------------------------------------------------------


def _results(
    source: Source,
    connection: duckdb.DuckDBPyConnection,
    batches: Sequence[Batch],
    places: Sequence[Place],
    jobs: int | None,
) -> Iterator[Findings | MessageFindings]:
    path = source.path
    jobs = jobs or os.cpu_count() or 1
    if jobs == 1 or sum(batch.events for batch in batches) < IN_ONE_PROCESS_EVENTS:
        for batch in batches:
            yield _audit_batch(connection, batch)
        for place in places:
            yield audit_partition(connection, place)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        try:
            yield from pool.map(_batch_beside, [source] * len(batches), batches)
            yield from pool.map(_partition_beside, [source] * len(places), places)
        except BrokenProcessPool as broken:
            raise StoreError(f"{path}: cannot be read: a process that read it died") from broken
        finally:
            pool.shutdown(cancel_futures=True)


def _batch_beside(source: Source, batch: Batch) -> Findings:
    with closing(_connect(source)) as connection, _readable(source.path):
        return _audit_batch(connection, batch)


def _partition_beside(source: Source, place: Place) -> MessageFindings:
    with closing(_connect(source)) as connection, _readable(source.path):
        return audit_partition(connection, place)


def _connect(source: Source) -> duckdb.DuckDBPyConnection:
    connection = opened(*source)
    connection.execute("SET threads = 1")
    connection.execute(f"SET memory_limit = '{_MEMORY_LIMIT}'")
    return connection


@final
class _readable:  # noqa: N801 - reads as the statement it stands in
    """Names the file in whatever DuckDB, or the audit, says of it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, duckdb.Error):
            raise StoreError(f"{self._path}: cannot read: {first_line(error)}") from error
        if isinstance(error, StoreError) and not str(error).startswith(str(self._path)):
            raise StoreError(f"{self._path}: {error}") from error


# -- conversations ------------------------------------------------------------------------------


def _batches(found: Sequence[tuple[str, str, int]]) -> list[Batch]:
    batches: list[Batch] = []
    keys: list[Key] = []
    events = 0
    for tenant_id, conversation_id, count in found:
        if keys and events + count > BATCH_EVENTS:
            batches.append(Batch(tuple(keys), events))
            keys, events = [], 0
        keys.append((tenant_id, conversation_id))
        events += max(1, count)
    if keys:
        batches.append(Batch(tuple(keys), events))
    return batches


def _audit_batch(connection: duckdb.DuckDBPyConnection, batch: Batch) -> Findings:
    is_long = batch.events > BATCH_EVENTS
    log = Rows(connection, LogRow, "log", batch.keys, long=is_long)
    derived = Rows(connection, DerivedRow, "derived", batch.keys, long=is_long)
    snapshots = Rows(connection, SnapshotRow, "snapshots", batch.keys, long=is_long)
    placed = _placed(connection, batch.keys)
    displaced = _Displaced(connection)
    is_indexed = bool(connection.execute(_HAS_INDEX).fetchall())
    findings = Findings()
    for key in batch.keys:
        rows = ConversationRows(
            key,
            log.of(key),
            derived.of(key),
            snapshots.of(key),
            partial(displaced.find, *key),
            placed.get(key),
        )
        conversation = audit_conversation(rows, findings)
        if conversation is not None:
            conversation.release()
            if is_indexed:
                findings.divergences += compare_intervals(connection, key)
    return findings


def _placed(
    connection: duckdb.DuckDBPyConnection, keys: Sequence[Key]
) -> dict[Key, frozenset[int]]:
    """The events of conversations whose places in Kafka a worker noted when it folded them.

    The place of a conversation that was taken in has the hash of whatever stands there in Kafka.
    """
    log = stored_log(connection) or "log"  # a place has the hash of what is stored
    rows = connection.execute(
        "SELECT tenant_id, conversation_id, list(sequence) FILTER (type IS NOT NULL) FROM places "
        f"LEFT JOIN {log} USING (tenant_id, conversation_id, sequence, record_hash) "
        "WHERE (tenant_id, conversation_id) IN (SELECT (unnest(?), unnest(?))) GROUP BY ALL",
        [[key[0] for key in keys], [key[1] for key in keys]],
    ).fetchall()
    return {(tenant, conversation): frozenset(found or ()) for tenant, conversation, found in rows}


@final
class _Displaced:
    """Rows of the log that stand at another place than their events say; looked for when needed."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._found: dict[tuple[str, str, int], LogRow] | None = None

    def find(self, tenant_id: str, conversation_id: str, sequence: int) -> LogRow | None:
        """The row of the event that belongs at this place, if it stands elsewhere."""
        if self._found is None:
            self._found = {}
            for row in every_log_row(self._connection):
                event = read_event(row)
                if event is None:
                    continue
                own = (event.tenant_id, event.conversation_id, event.sequence)
                if own != row[:3] and has_own_hash(row):
                    self._found[own] = row
        return self._found.pop((tenant_id, conversation_id, sequence), None)
