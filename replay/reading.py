"""Reads one conversation out of a store and believes nothing on the way.

Whatever is read is compared with what was stored beside it: the bytes of an event with their hash,
what folding it gives with its two digests, a snapshot with its hash and with the log event it was
taken at, and the end of the log with what came of it. So an altered row that matters to the answer
is named, and one that does not matter cannot change it.
"""

from __future__ import annotations

import gc
import hashlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

import duckdb
import orjson

from processor.engine.conversation import Conversation
from processor.engine.plausibility.bounds import Bounds
from processor.engine.snapshot import SNAPSHOT_FORMAT, load
from processor.engine.snapshot_delta import DELTA_FORMAT, mark_of
from processor.evidence.fold import Folded, Refused, advance, fold
from replay.errors import NotKeptError, StoreError
from replay.snapshots import has_deltas
from schemas.ids import conversation_key
from schemas.log import LogEvent
from schemas.wire import decode_log_event

SETUP_TYPE = "standfast.setup.v1"
PAGE_EVENTS = 500
"""Events that are read at once, so that a long log is never in memory as a whole."""
_EVERY_TURN = 2**63 - 1
_UNREADABLE = (zlib.error, ValueError, TypeError, LookupError, AttributeError)
Came = TypeVar("Came")


@final
@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One event of the log as it was stored."""

    sequence: int
    turn: int
    type: str
    digest: str
    state_digest: str
    record_hash: str
    event: bytes


@final
class ConversationReader:
    """Reads one conversation at any turn. Raises StoreError naming what was altered."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path,
        tenant_id: str,
        conversation_id: str,
    ) -> None:
        self._connection = connection
        self._path = path
        self._ids = (tenant_id, conversation_id)

    def at(self, turn: int | None, bounds: Bounds | None = None) -> Conversation | None:
        """The conversation right after a turn (None: after its whole log).

        None if there is no such log, or if it does not reach that turn.
        """
        if turn == 0:
            return self._at_the_start(bounds)
        conversation = self._newest_snapshot(turn, bounds)
        if conversation is None:
            conversation = Conversation.empty(*self._ids, bounds)
        for stored in self.events(conversation.sequence, turn):
            self._fold(conversation, stored)
            if conversation.turn == turn:
                return conversation
        self._check_end(conversation)
        return conversation if turn is None and conversation.sequence > 0 else None

    def told(self, conversation: Conversation) -> Iterator[tuple[LogEvent, Folded]]:
        """Fold what the log has beyond the conversation, and give what came of each event."""
        for stored in self.events(conversation.sequence):
            yield self._take(conversation, stored, fold)
        self._check_end(conversation)

    def _at_the_start(self, bounds: Bounds | None) -> Conversation | None:
        """What a setup leaves, or nothing at all: what was only checked is no part of it."""
        first = next(self.events(), None)
        if first is None:
            return None
        if first.sequence > 1:
            raise self._missing(1)
        conversation = Conversation.empty(*self._ids, bounds)
        if first.type == SETUP_TYPE:
            self._fold(conversation, first)
        return conversation

    def events(self, after: int = 0, turn: int | None = None) -> Iterator[StoredEvent]:
        """The stored events after a sequence and up to a turn, in order, as they are."""
        while True:
            rows = self._rows(
                "SELECT sequence, turn, type, digest, state_digest, record_hash, event FROM log "
                "WHERE tenant_id = ? AND conversation_id = ? "
                "AND sequence > ? AND sequence <= ? AND turn <= ? "
                "ORDER BY sequence",
                after,
                after + PAGE_EVENTS,
                _EVERY_TURN if turn is None else turn,
            )
            for row in rows:
                yield StoredEvent(*row)
            after += PAGE_EVENTS
            if not rows or rows[-1][0] < after:
                return

    def _newest_snapshot(self, turn: int | None, bounds: Bounds | None) -> Conversation | None:
        """The newest snapshot from before the turn, once it agrees with the log."""
        ((sequence,),) = self._rows(
            "SELECT max(sequence) FROM snapshots WHERE tenant_id = ? AND conversation_id = ? "
            "AND format = ? AND turn < ?",
            SNAPSHOT_FORMAT,
            _EVERY_TURN if turn is None else turn,
        )
        if sequence is None:
            return None
        (taken_at, state_digest, bytes_hash, stored), *_ = self._rows(
            "SELECT turn, state_digest, bytes_hash, conversation FROM snapshots "
            "WHERE tenant_id = ? AND conversation_id = ? AND sequence = ? AND format = ?",
            sequence,
            SNAPSHOT_FORMAT,
        )
        if hashlib.sha256(stored).hexdigest() != bytes_hash:
            raise self._bad_snapshot(sequence, "its bytes have another hash")
        deltas: list[bytes] = []
        for row in self._deltas(sequence, turn):
            sequence, taken_at, state_digest, delta = row
            deltas.append(delta)
        try:
            with _without_collecting():
                conversation = load(zlib.decompress(stored), bounds, deltas)
        except _UNREADABLE as error:
            raise self._bad_snapshot(sequence, "its bytes cannot be read") from error
        if turn is None and has_deltas(conversation):
            conversation.mark = mark_of(conversation)
        found = (conversation.tenant_id, conversation.conversation_id, conversation.sequence)
        if found != (*self._ids, sequence):
            raise self._bad_snapshot(sequence, "it belongs elsewhere")
        if (conversation.turn, conversation.state_digest()) != (taken_at, state_digest):
            raise self._bad_snapshot(sequence, "its turn or state digest is another")
        self._check_against_log(conversation)
        return conversation

    def _deltas(self, base: int, turn: int | None) -> Iterator[tuple[int, int, str, bytes]]:
        """Sequence, turn, state digest and bytes of the deltas onto a snapshot, one on the other.

        They end where one is gone.
        """
        rows = self._rows(
            "SELECT sequence, turn, state_digest, bytes_hash, conversation FROM snapshots "
            "WHERE tenant_id = ? AND conversation_id = ? AND format = ? AND sequence > ? "
            "AND turn < ? ORDER BY sequence",
            DELTA_FORMAT,
            base,
            _EVERY_TURN if turn is None else turn,
        )
        for sequence, taken_at, state_digest, bytes_hash, stored in rows:
            if hashlib.sha256(stored).hexdigest() != bytes_hash:
                raise self._bad_snapshot(sequence, "its bytes have another hash")
            try:
                delta = zlib.decompress(stored)
                rests_on = orjson.loads(delta)["base"]
            except _UNREADABLE as error:
                raise self._bad_snapshot(sequence, "its bytes cannot be read") from error
            if rests_on != base:
                return
            base = sequence
            yield sequence, taken_at, state_digest, delta

    def _check_against_log(self, conversation: Conversation) -> None:
        """A snapshot says what the log says of the event that it was taken at."""
        sequence = conversation.sequence
        stored = next(self.events(sequence - 1), None)
        if stored is None or stored.sequence != sequence:
            raise self._bad_event(sequence, "is missing")
        self._check_bytes(stored)
        if _disagreement(conversation, stored) is not None:
            raise self._bad_snapshot(sequence, "it disagrees with the log event it was taken at")

    def _fold(self, conversation: Conversation, stored: StoredEvent) -> None:
        self._take(conversation, stored, advance)

    def _take(
        self,
        conversation: Conversation,
        stored: StoredEvent,
        how: Callable[[Conversation, LogEvent], Came | Refused],
    ) -> tuple[LogEvent, Came]:
        self._check_bytes(stored)
        if stored.sequence > conversation.sequence + 1:
            raise self._missing(conversation.sequence + 1)
        try:
            event = decode_log_event(stored.event)
            came = how(conversation, event)
        except ValueError as invalid:
            raise self._bad_event(stored.sequence, f"cannot be read: {invalid}") from invalid
        if isinstance(came, Refused):
            raise self._bad_event(stored.sequence, f"does not fold: {came.reason}")
        wrong = _disagreement(conversation, stored)
        if wrong is not None:
            raise self._bad_event(stored.sequence, f"was altered: its {wrong} is another")
        return event, came

    def _check_bytes(self, stored: StoredEvent) -> None:
        if hashlib.sha256(stored.event).hexdigest() != stored.record_hash:
            raise self._bad_event(stored.sequence, "was altered: its bytes have another hash")

    def _check_end(self, conversation: Conversation) -> None:
        """Nothing came of events that are not there."""
        later = "WHERE tenant_id = ? AND conversation_id = ? AND sequence > ?"
        ((last,),) = self._connection.execute(
            f"SELECT max(sequence) FROM (SELECT sequence FROM log {later} "
            f"UNION ALL SELECT sequence FROM derived {later} "
            f"UNION ALL SELECT sequence FROM snapshots {later})",
            [*self._ids, conversation.sequence] * 3,
        ).fetchall()
        if last is not None:
            raise self._missing(conversation.sequence + 1)

    def _rows(self, query: str, *parameters: object) -> list[Any]:
        return self._connection.execute(query, [*self._ids, *parameters]).fetchall()

    def _missing(self, sequence: int) -> StoreError:
        """Why an event is not here: a worker that began from a shared checkpoint never had it."""
        ((origin,),) = self._rows(
            "SELECT min(sequence) FROM snapshots WHERE tenant_id = ? AND conversation_id = ? "
            "AND sequence > ? AND NOT EXISTS (SELECT 1 FROM log WHERE "
            "log.tenant_id = snapshots.tenant_id AND log.conversation_id = "
            "snapshots.conversation_id AND log.sequence = snapshots.sequence - 1)",
            sequence,
        )
        if origin is None:
            return self._bad_event(sequence, "is missing")
        return NotKeptError(
            f"{self._path}: event {sequence} of {self._name()} is missing: this store goes on from "
            f"a shared checkpoint at event {origin}; the topic operations has what was before"
        )

    def _bad_event(self, sequence: int, what: str) -> StoreError:
        return StoreError(f"{self._path}: event {sequence} of {self._name()} {what}")

    def _bad_snapshot(self, sequence: int, what: str) -> StoreError:
        return StoreError(
            f"{self._path}: the snapshot of {self._name()} at event {sequence} was altered: "
            f"{what}; deleted from the table snapshots, it is done without"
        )

    def _name(self) -> str:
        return conversation_key(*self._ids)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """A snapshot is one large graph without garbage: looking for some takes a third of loading."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _disagreement(conversation: Conversation, stored: StoredEvent) -> str | None:
    """The first column that disagrees with the conversation after the event, or None."""
    if stored.turn != conversation.turn:
        return "turn"
    if stored.digest != conversation.digest:
        return "digest"
    if stored.state_digest != conversation.state_digest():
        return "state_digest"
    return None
