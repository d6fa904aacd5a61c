"""Folds one conversation again and compares every row that a store has of it.

A row is identified by what its bytes say, as long as these have the hash that was stored with
them: so a changed tenant, conversation or sequence is told as that, and not as one row missing and
another too many. Where the log itself was changed, what follows cannot be folded; the audit goes on
from the next sound snapshot, and until there it compares each row with itself only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import NamedTuple, final

from processor.engine.conversation import Conversation
from processor.engine.mark import Mark
from processor.engine.snapshot import dump, load
from processor.engine.snapshot_delta import delta, mark_of
from processor.evidence.fold import RefusalReason, Refused
from processor.render.reduce import reduce
from replay.audit.derived import compare_derived, digest_told, own_place_differs, stray
from replay.audit.findings import Findings
from replay.audit.rows import (
    Ahead,
    DerivedRow,
    Key,
    LogRow,
    SnapshotRow,
    has_own_hash,
    read_event,
)
from replay.audit.snapshots import base_of, compare_snapshot, decompressed
from replay.divergence import Divergence, Where, changed, shown
from replay.errors import StoreError
from replay.snapshots import has_deltas
from schemas.ids import conversation_key
from schemas.log import CandidateAppended, ConversationErased, ConversationSetUp, LogEvent
from schemas.wire import WireError, decode_log_event


@final
class ConversationRows(NamedTuple):
    """All that a store has of one conversation, each in the order of the log.

    `displaced` finds the row of an event that stands somewhere else. `placed` are the events of
    which a worker noted where they stand in Kafka, None if it noted nothing of the conversation; it
    may have taken it in without its beginning, and events without what came of them.
    """

    key: Key
    log: Iterator[LogRow]
    derived: Iterator[DerivedRow]
    snapshots: Iterator[SnapshotRow]
    displaced: Callable[[int], LogRow | None]
    placed: frozenset[int] | None


def audit_conversation(rows: ConversationRows, findings: Findings) -> Conversation | None:
    """Add what is wrong with a conversation; the conversation, if it could be folded to its end.

    Raises StoreError for what this version cannot read.
    """
    return _Audit(rows, findings).run()


@final
class _Audit:
    def __init__(self, rows: ConversationRows, findings: Findings) -> None:
        self._rows = rows
        self._findings = findings
        self._derived = Ahead(rows.derived)
        self._snapshots = Ahead(rows.snapshots)
        self._conversation: Conversation | None = Conversation.empty(*rows.key)
        self._reached = 0
        """The last place of the log that was dealt with."""
        self._digest_was_wrong = False
        self._taken_in = 0
        self._mark: Mark | None = None

    def run(self) -> Conversation | None:
        for row in self._rows.log:
            self._take(row)
        while self._derived.has_more() and self._restore(self._reached + 1):
            pass
        self._orphans(None)
        if self._taken_in:
            count = f"{self._taken_in:,} of its events"
            self._findings.notes.append(
                f"{self._name()}: what came of {count} did not come with the checkpoint they did"
            )
        return self._conversation

    # -- the log --------------------------------------------------------------------------------

    def _take(self, row: LogRow) -> None:
        event = read_event(row)
        hashed = has_own_hash(row)
        if event is None and hashed:
            raise StoreError(f"event {row.sequence} of {self._name()} cannot be read: {_why(row)}")
        if event is not None and hashed and _place(event) != row[:3]:
            self._report_misplaced(event, row)
            return
        if row.sequence <= self._reached:
            self._report(Divergence(self._where(row.sequence), None, "stands twice in the log"))
            return
        self._bridge(row)
        self._fold(row, event, hashed)

    def _report_misplaced(self, event: LogEvent, row: LogRow) -> None:
        where = Where("log", event.tenant_id, event.conversation_id, event.sequence)
        for name, expected, actual in zip(LogRow._fields, _place(event), row[:3], strict=False):
            if expected != actual:
                self._report(changed(where, name, expected, actual))

    def _bridge(self, row: LogRow) -> None:
        """Deal with the events that should stand before this row and do not."""
        while self._reached + 1 < row.sequence:
            if self._conversation is not None and self._starts_at_checkpoint(row):
                self._findings.notes.append(
                    f"{self._name()} goes on from a shared checkpoint at event {row.sequence}"
                )
                self._stop(row.sequence - 1)
            elif not self._restore(self._reached + 1):
                self._lack(self._reached + 1, row.sequence - 1)
        self._orphans(row.sequence)

    def _restore(self, sequence: int) -> bool:
        """Fold an event whose row stands somewhere else, where it is reported."""
        moved = self._rows.displaced(sequence)
        if moved is None:
            return False
        self._orphans(sequence)
        self._fold(moved._replace(sequence=sequence), read_event(moved), True)
        return True

    def _starts_at_checkpoint(self, row: LogRow) -> bool:
        snapshot = self._snapshots.peek(row.sequence)
        return self._rows.placed is not None and snapshot is not None

    def _lack(self, first: int, last: int | None = None) -> None:
        """Events are not there, and nothing can be folded until a snapshot."""
        last = first if last is None else last
        problem = "is missing" if first == last else f"is missing, and all to sequence {last}"
        self._report(Divergence(self._where(first), None, problem))
        self._stop(last)

    def _was_taken_in(self, sequence: int) -> bool:
        """Whether an event may have come with a shared checkpoint: then nothing else came along."""
        placed = self._rows.placed
        return placed is not None and not {sequence - 1, sequence} <= placed

    def _stop(self, reached: int) -> None:
        """Nothing can be folded until a snapshot."""
        self._conversation = None
        self._reached = reached
        self._digest_was_wrong = False

    def _fold(self, row: LogRow, event: LogEvent | None, hashed: bool) -> None:
        self._findings.events += 1
        self._findings.rules[row.rules_version if event is None else event.rules_version] += 1
        self._reached = row.sequence
        derived_rows = self._derived.take(row.sequence)
        if event is None:
            self._report_event(row, "was changed: it cannot be read")
            self._stop(row.sequence)
        elif self._conversation is not None:
            self._findings.turns += not isinstance(
                event, CandidateAppended | ConversationSetUp | ConversationErased
            )
            derived_rows = self._advance(row, event, hashed, derived_rows)
        elif hashed:
            self._compare_columns(row, event)
        else:
            self._report_event(row, "was changed")
        if self._conversation is None:
            self._findings.not_folded += 1
            self._strays(derived_rows)
            self._resume(row, hashed)
        else:
            self._compare_snapshots(row.sequence)

    def _advance(
        self, row: LogRow, event: LogEvent, hashed: bool, derived_rows: list[DerivedRow]
    ) -> list[DerivedRow]:
        """Fold an event and compare; what is left of the derived rows if it was forged."""
        conversation = self._conversation
        assert conversation is not None
        derived = reduce(conversation, event)
        if isinstance(derived, Refused):
            if hashed and derived.reason is RefusalReason.UNKNOWN_RULES:
                raise StoreError(
                    f"event {row.sequence} of {self._name()} needs rules version "
                    f"{event.rules_version}, which this version does not have"
                )
            self._report_event(row, f"was changed: it does not fold: {derived.reason}")
            self._stop(row.sequence)
            return derived_rows
        if self._is_forged(row, conversation, hashed, derived_rows):
            self._stop(row.sequence)
            return derived_rows
        where = self._where(row.sequence)
        if not hashed:
            actual_hash = hashlib.sha256(row.event).hexdigest()
            self._report(changed(where, "record_hash", actual_hash, row.record_hash))
        self._compare_columns(row, event)
        self._digest_was_wrong = row.digest != conversation.digest
        for name, expected, actual in (
            ("digest", conversation.digest, row.digest),
            ("state_digest", conversation.state_digest(), row.state_digest),
        ):
            if expected != actual:
                self._report(changed(where, name, expected, actual))
        if derived and not derived_rows and self._was_taken_in(row.sequence):
            self._taken_in += 1
        else:
            compare_derived(where, derived, derived_rows, self._findings)
        return []

    def _is_forged(
        self, row: LogRow, conversation: Conversation, hashed: bool, rows: list[DerivedRow]
    ) -> bool:
        """Whether the event is another than the one that was folded: everything else says so."""
        if row.digest == conversation.digest:
            return False
        told = digest_told(rows)
        if hashed and told == conversation.digest:
            return False
        if hashed and row.state_digest == conversation.state_digest() and told != row.digest:
            if not self._digest_was_wrong:
                return False
            self._findings.notes.append(
                f"{self._name()}: the chain of digests is broken from event {row.sequence} on"
            )
            return True
        self._report_event(row, "was changed: its digest is another", conversation.digest)
        return True

    def _compare_columns(self, row: LogRow, event: LogEvent) -> None:
        """The columns that repeat what the event says."""
        turn = getattr(event, "turn", row.turn)
        if self._conversation is not None:
            turn = self._conversation.turn
        where = self._where(row.sequence)._replace(turn=turn)
        at = event.at
        said_at = int(at.timestamp()) * 1_000_000 + at.microsecond
        for name, expected, actual in (
            ("turn", turn, row.turn),
            ("type", event.type, row.type),
            ("utterance_id", event.utterance.id, row.utterance_id),
            ("speaker", event.speaker, row.speaker),
            ("said_at", said_at, row.said_at),
            ("rules_version", event.rules_version, row.rules_version),
        ):
            if expected != actual:
                self._report(changed(where, name, expected, actual))

    # -- what came of it ------------------------------------------------------------------------

    def _orphans(self, before: int | None) -> None:
        """Rows about events that are not in the log."""
        while (row := self._derived.pop_before(before)) is not None:
            if own_place_differs(row):
                self._findings.strays.append(stray(row))
            elif row.sequence > self._reached:
                self._lack(row.sequence)
        while (snapshot := self._snapshots.pop_before(before)) is not None:
            differences = list(compare_snapshot(snapshot, None, None))
            self._findings.divergences += differences
            if not differences and snapshot.sequence > self._reached:
                self._lack(snapshot.sequence)

    def _strays(self, rows: list[DerivedRow]) -> None:
        self._findings.strays += [stray(row) for row in rows if own_place_differs(row)]

    def _compare_snapshots(self, sequence: int) -> None:
        rows = self._snapshots.take(sequence)
        if not rows or self._conversation is None:
            return
        conversation, mark = self._conversation, self._mark
        digest = conversation.state_digest()
        for place, row in enumerate(rows):
            if row in rows[:place]:
                where = Where("snapshots", *row[:4])
                self._report(Divergence(where, None, "stands twice"))
                continue
            base = base_of(row)
            if base is None:
                expected = dump(conversation)
            elif mark is not None and base == mark.sequence:
                expected = delta(conversation, mark)
            else:
                where = Where("snapshots", *row[:4])
                problem = f"rests on a snapshot at event {base}, which is not the one before it"
                self._report(Divergence(where, None, problem))
                continue
            self._findings.divergences += compare_snapshot(row, expected, digest)
        self._mark = mark_of(conversation) if has_deltas(conversation) else None

    def _resume(self, row: LogRow, hashed: bool) -> None:
        """Go on from a snapshot that was taken at this event, if it agrees with the log."""
        for snapshot in self._snapshots.take(row.sequence):
            differences = list(compare_snapshot(snapshot, None, None))
            self._findings.divergences += differences
            stored = decompressed(snapshot)
            is_delta = base_of(snapshot) is not None
            if differences or stored is None or is_delta or not hashed:
                continue
            loaded = load(stored)
            if (loaded.digest, loaded.state_digest()) == (row.digest, row.state_digest):
                self._conversation = loaded
                self._mark = mark_of(loaded) if has_deltas(loaded) else None
                self._digest_was_wrong = False

    # -- telling --------------------------------------------------------------------------------

    def _report(self, divergence: Divergence) -> None:
        self._findings.divergences.append(divergence)

    def _report_event(self, row: LogRow, problem: str, digest: str | None = None) -> None:
        where = self._where(row.sequence)
        if digest is not None:
            self._report(Divergence(where, "event", problem, "", row.digest, digest))
            return
        actual_hash = hashlib.sha256(row.event).hexdigest()
        self._report(Divergence(where, "event", problem, "", row.record_hash, actual_hash))

    def _where(self, sequence: int) -> Where:
        turn = None if self._conversation is None else self._conversation.turn
        return Where("log", *self._rows.key, sequence, turn)

    def _name(self) -> str:
        return conversation_key(*self._rows.key)


def _place(event: LogEvent) -> tuple[str, str, int]:
    return event.tenant_id, event.conversation_id, event.sequence


def _why(row: LogRow) -> str:
    try:
        decode_log_event(row.event)
    except WireError as invalid:
        return str(invalid)
    return shown(row.event)
