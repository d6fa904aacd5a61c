"""The reducer with the ledger: what everything that folds a log calls.

A turn is the engine's transition, and within it, once its operations are applied, what its atoms
imply: a record whose value was superseded is revised by the record that superseded it, a record
that arrives late by the one it came too late for, and records that contradict each other are
disputed. All of that follows from the log and is part of its digests from rules version 2 on.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import final

from processor.engine.authority import UNRESTRICTED, Authority, authority
from processor.engine.conversation import Conversation
from processor.engine.fold import (
    Advanced,
    Folded,
    RefusalReason,
    Refused,
    atom_source,
    derived,
    refusal_reason,
)
from processor.engine.fold import advance as engine_advance
from processor.engine.implied import (
    NOTHING_IMPLIED,
    Implied,
    ImpliedDispute,
    ImpliedRevision,
)
from processor.engine.record import Record
from processor.engine.rules_version import RULES_V2
from processor.engine.state import State
from processor.evidence.fact import Arrival
from processor.evidence.ledger import Ledger
from processor.evidence.projection import Kept, events_of_turn, kept_ledger, scorer_for
from processor.evidence.row import LIVE_MAX, Entered, Holding, Row
from schemas.derived import Note, NoteCode, Standing
from schemas.evidence import Supersession
from schemas.log import LogEvent, OperationsAppended
from schemas.policy import Act

__all__ = ["Advanced", "Folded", "RefusalReason", "Refused", "advance", "fold", "refusal_reason"]

SIDES_MAX = 64
"""How many records one atom brings its record in dispute with: the newest of each holding, then the
newest of them all. Each is a dispute that later turns carry along."""


def fold(conversation: Conversation, event: LogEvent) -> Folded | Refused:
    """Fold one event and derive what it brought about."""
    advanced = advance(conversation, event)
    if isinstance(advanced, Refused):
        return advanced
    return Folded(derived(conversation, event, advanced), advanced)


def advance(conversation: Conversation, event: LogEvent) -> Advanced | Refused:
    """Fold one event without deriving anything from it: what recovery and replay need."""
    if not isinstance(event, OperationsAppended):
        advanced = engine_advance(conversation, event)
        if isinstance(conversation.projection, Kept):
            conversation.projection.turn = conversation.turn
        return advanced
    reading = _Reading(conversation, event)
    advanced = engine_advance(conversation, event, reading.implied)
    if isinstance(advanced, Refused):
        return advanced
    if event.rules_version < RULES_V2:  # nothing was asked: atoms had no consequences then
        assert advanced.outcome is not None
        state = conversation.state
        reading.implied(state, [state.records[id_] for id_ in advanced.outcome.introduced])
    reading.keep(conversation)
    return advanced


@final
class _Reading:
    """What the ledger makes of one turn: asked while it is applied, kept once it is.

    Without a `branch` the turn is nothing to the ledger.
    """

    def __init__(self, conversation: Conversation, event: OperationsAppended) -> None:
        self._kept = kept_ledger(conversation)
        self._event = event
        self._revised = [each.target for each in event.operations if each.op == "revise"]
        self._branch: Ledger | None = None
        self._protected: dict[str, None] = {}
        self._powerless: dict[tuple[str, str], None] = {}
        self._looked_at: dict[int, tuple[int, str | None]] = {}

    def implied(self, state: State, born: Sequence[Record]) -> Implied:
        """What the atoms of the turn imply for its records and older ones."""
        self._branch = None
        self._protected = {}
        self._powerless = {}
        self._looked_at = {}
        known = self._kept.ledger.keys_of_record
        arrived = [record for record in born if record.atoms]
        withdrawn = [id_ for id_ in self._revised if id_ in known]
        if not arrived and not withdrawn:
            return NOTHING_IMPLIED
        self._branch = branch = self._kept.ledger.branch()
        source = atom_source(self._event)
        scorer = scorer_for(source)
        own = self._authority_in(state, self._event.role)
        entered: list[tuple[Arrival, Entered]] = []
        for event in events_of_turn(
            state, self._event.turn, born, self._revised, source, branch.count
        ):
            if isinstance(event, Arrival):
                event = self._within_authority(state, own, branch, event)
            done = branch.take(event, scorer)
            if isinstance(event, Arrival) and done is not None:
                entered.append((event, done._replace(row=Row(event.fact.key))))  # rows are long
        return _implied(state, entered, source.supersession is not Supersession.OFF)

    def _within_authority(
        self, state: State, authority: Authority, ledger: Ledger, arrival: Arrival
    ) -> Arrival:
        """The arrival with the records of its row that it may not withdraw, or they not it."""
        own = state.records[arrival.fact.record]
        protected = tuple(
            dict.fromkeys(
                protector
                for holding in ledger.live_at(arrival)
                if (protector := self._first_protected(state, authority, holding)) is not None
            )
        )
        powerless = tuple(
            id_
            for id_ in ledger.records_ahead(arrival)
            if self._authority_in(state, state.records[id_].role).forbids(Act.REVISE, own)
        )
        self._protected |= dict.fromkeys(protected)
        self._powerless |= dict.fromkeys((own.id, id_) for id_ in powerless)
        return arrival._replace(protected=protected, powerless=powerless)

    def _authority_in(self, state: State, role: str | None) -> Authority:
        """What a record introduced in the role may bring down under the policy of now."""
        if role is None:
            return UNRESTRICTED
        return authority(state, self._event.rules_version, role, self._event.policy)

    def _first_protected(self, state: State, authority: Authority, holding: Holding) -> str | None:
        """A record that protects its holding; one is enough.

        While atoms of a turn arrive a holding only grows, so each of its facts is looked at once.
        """
        looked_at, found = self._looked_at.get(holding.place, (0, None))
        if found is None:
            ids = (fact.record for fact in holding.facts[looked_at:])
            forbids = authority.forbids
            found = next((id_ for id_ in ids if forbids(Act.REVISE, state.records[id_])), None)
            self._looked_at[holding.place] = len(holding.facts), found
        return found

    def keep(self, conversation: Conversation) -> None:
        """The turn was kept: so is what came to the ledger."""
        if self._branch is not None:
            self._kept.ledger.adopt(self._branch)
        if self._protected or self._powerless:
            source = atom_source(self._event)._replace(
                protected=tuple(self._protected), powerless=tuple(self._powerless)
            )
            conversation.atom_sources[self._event.turn] = source
        self._kept.turn = conversation.turn


def _implied(state: State, entered: Sequence[tuple[Arrival, Entered]], acts: bool) -> Implied:
    """What follows for the records; only the remarks on late atoms if the policy is off."""
    revisions: dict[ImpliedRevision, None] = {}
    disputes: dict[ImpliedDispute, None] = {}
    notes: list[Note] = []
    left_out: dict[str, None] = {}
    for arrival, done in entered:
        record = arrival.fact.record
        if done.late_behind is not None:
            ahead = done.late_behind.record
            notes.append(_late(arrival, ahead))
            revisions[ImpliedRevision(record, ahead)] = None
        if done.is_left_out:
            left_out[record] = None
        for holding in done.superseded:
            revisions |= dict.fromkeys(ImpliedRevision(id_, record) for id_ in holding.records())
        disputes |= dict.fromkeys(
            ImpliedDispute(record, other) for other in _others(record, done.contradicted)
        )
        for older in done.beside[-SIDES_MAX:]:
            disputes |= dict.fromkeys(
                ImpliedDispute(older, other) for other in _others(older, done.newly_contradicted)
            )
    notes.extend(map(_left_out, left_out))
    if not acts:
        return Implied(notes=tuple(notes))
    kept: dict[str, ImpliedRevision] = {}
    for revision in revisions:
        stands = state.records[revision.target].standing is not Standing.ABANDONED
        if stands and revision.target != revision.by:
            kept.setdefault(revision.target, revision)
    return Implied(
        tuple(kept.values()), tuple(_standing_disputes(state, disputes, kept)), tuple(notes)
    )


def _standing_disputes(
    state: State, disputes: Iterable[ImpliedDispute], gone: Container[str]
) -> Iterator[ImpliedDispute]:
    """The disputes between records that are not given up in the same turn."""

    def stays(id_: str) -> bool:
        return id_ not in gone and state.records[id_].standing is not Standing.ABANDONED

    for record, others in disputes:
        if stays(record) and all(map(stays, others)):
            yield ImpliedDispute(record, others)


def _others(record: str, contradicted: Sequence[Holding]) -> Iterator[tuple[str, ...]]:
    """The other side of each dispute; nobody if a record contradicts itself.

    One dispute for each record, so that revising one of them clears no more than its own.
    """
    by_age = [holding.newest_records(SIDES_MAX) for holding in reversed(contradicted)]
    newest = (ids[-1] for ids in by_age)
    others = (id_ for ids in by_age for id_ in reversed(ids))
    for id_ in sorted(islice(dict.fromkeys(chain(newest, others)), SIDES_MAX)):
        yield () if id_ == record else (id_,)


def _left_out(record: str) -> Note:
    text = f"{LIVE_MAX} values are in force beside an atom of {record}: the ledger has no more room"
    return Note(code=NoteCode.BOUND_EXCEEDED, text=text, records=(record,))


def _late(arrival: Arrival, ahead: str) -> Note:
    record = arrival.fact.record
    text = f"an atom of {record} is older than what {ahead} gave: it enters the history alone"
    return Note(code=NoteCode.LATE_ATOM, text=text, records=tuple(sorted({record, ahead})))
