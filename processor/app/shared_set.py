"""The set of checkpoints of one partition, as it is read from the place where workers share them.

Records of a set are published before its marker, and the records of the next set replace some of
them before that one has a marker. That does no harm: a conversation that is further than the marker
says so, and its events up to there are passed over. What does harm is an older conversation in
place of a newer one, from a publisher that should be dead; so nobody but the marker's publisher may
have published anything older than the marker since it began.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterator
from itertools import chain
from typing import final

from processor.app.shared_place import Record
from processor.engine.snapshot import SNAPSHOT_FORMAT
from replay.batch import Position
from replay.sharing import Packed, TakenIn
from schemas.checkpoint import MARKER_KEY, Forgotten, Marker, SharedConversation, read_record
from schemas.ids import conversation_key
from schemas.wire import WireError

_CACHE_KIB = 8 * 1024
_ROWS = 16


@final
class SharedSet:
    """The newest record of each key, in a temporary file; one call at a time, from any thread."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.marker: Marker | None = None
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._file.close)
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._file.execute(
            "CREATE TABLE records (key BLOB PRIMARY KEY, place INTEGER, is_sound INTEGER, "
            "is_forgotten INTEGER, publisher TEXT, state_format INTEGER, next_offset INTEGER, "
            "record_hash TEXT, value BLOB)"
        )
        self._file.execute("BEGIN")  # and never committed: there is nothing to recover

    def add(self, records: list[Record]) -> None:
        """Take in records in their order; later ones replace earlier ones."""
        for record in records:
            if record.key == MARKER_KEY:
                self._mark(record)
            elif record.value is None:
                self._file.execute("DELETE FROM records WHERE key = ?", [record.key])
            else:
                self._file.execute(
                    "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [record.key, record.place, *_facts(record.key, record.value), record.value],
                )

    def _mark(self, record: Record) -> None:
        if record.value is None:
            self.marker = None
            return
        try:
            head, _ = read_record(record.value)
        except WireError:
            return  # the one before it is as good, if it is still there
        if isinstance(head, Marker):
            self.marker = head

    def objection(self) -> str | None:
        """Why the set cannot be used, whatever the log says; None if it can."""
        marker = self.marker
        if marker is None:
            return "no marker"
        if marker.state_format != SNAPSHOT_FORMAT or self._any(
            "state_format != ? AND is_sound", SNAPSHOT_FORMAT
        ):
            return "another format of states"
        if self._any("NOT is_sound"):
            return "a damaged record"
        if self._any(
            "place >= ? AND publisher != ? AND next_offset < ?",
            *(marker.since, marker.publisher, marker.next_offset),
        ):
            return "an older record in place of a newer one"
        ((count,),) = self._file.execute("SELECT count(*) FROM records WHERE NOT is_forgotten")
        return "missing records" if count < marker.conversations else None

    def _any(self, condition: str, *given: object) -> bool:
        query = f"SELECT EXISTS (SELECT 1 FROM records WHERE {condition})"
        ((found,),) = self._file.execute(query, given)
        return bool(found)

    def positions(self) -> list[Position]:
        """The places in the log that the set names: the marker's, and any beyond it."""
        assert self.marker is not None
        named = Position(self.partition, self.marker.next_offset, self.marker.record_hash)
        beyond = self._file.execute(
            "SELECT DISTINCT next_offset, record_hash FROM records WHERE next_offset >= ? "
            "AND NOT is_forgotten ORDER BY 1, 2",
            [named.next_offset],
        )
        others = (Position(self.partition, *row) for row in beyond)
        return [named, *(each for each in others if each != named)]

    def keys(self) -> list[bytes]:
        """The keys of all records that are not forgotten."""
        rows = self._file.execute("SELECT key FROM records WHERE NOT is_forgotten ORDER BY key")
        return [key for (key,) in rows]

    def conversations(self) -> Iterator[TakenIn]:
        """All conversations of a set to which there is no objection."""
        rows = self._file.execute("SELECT value FROM records WHERE NOT is_forgotten ORDER BY key")
        for (value,) in chain.from_iterable(iter(lambda: rows.fetchmany(_ROWS), [])):
            head, payload = read_record(value)
            assert isinstance(head, SharedConversation)
            yield TakenIn(
                Position(self.partition, head.next_offset, head.record_hash),
                Packed(
                    head.tenant_id,
                    head.conversation_id,
                    head.sequence,
                    head.state_digest,
                    payload,
                ),
            )


def _facts(key: bytes, value: bytes) -> tuple[object, ...]:
    """Of a record: sound, forgotten, publisher, format, and the position."""
    try:
        head, _ = read_record(value)
    except WireError:
        return (False, False, "", 0, 0, "")
    place = (head.publisher, head.state_format, head.next_offset, head.record_hash)
    match head:
        case SharedConversation():
            own = conversation_key(head.tenant_id, head.conversation_id).encode()
            return (own == key, False, *place)
        case Forgotten():
            return (True, True, *place)
        case Marker():
            return (False, False, *place)
