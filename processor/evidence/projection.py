"""The ledger of a conversation, read from its records.

Everything that decides stands in the conversation: the atoms of its records, who told them (the
turn's `AtomSource`), and what was revised by an operation (the trails). So a ledger is made up
again from any snapshot, and is the same as one that was kept from turn to turn. In a turn the atoms
come first, in the order of the records, then the withdrawals in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import final

from processor.engine.conversation import Conversation
from processor.engine.implied import AtomSource
from processor.engine.record import Record, TrailEntry
from processor.engine.state import State
from processor.evidence.fact import Arrival, Told, fact_of
from processor.evidence.ledger import Event, Ledger, Withdrawal
from processor.evidence.scorer import RULES, RulesScorer, Scorer
from schemas.evidence import Supersession


@final
class Kept:
    """A ledger and the turn up to which it is folded."""

    __slots__ = ("ledger", "turn")

    def __init__(self, ledger: Ledger, turn: int) -> None:
        self.ledger = ledger
        self.turn = turn


def ledger_of(conversation: Conversation) -> Ledger:
    """The ledger of the conversation as it is now."""
    return kept_ledger(conversation).ledger


def kept_ledger(conversation: Conversation) -> Kept:
    """The same with its turn, for whoever takes it on from there."""
    kept = conversation.projection
    if not isinstance(kept, Kept) or kept.turn != conversation.turn:
        kept = Kept(made_up(conversation), conversation.turn)
        conversation.projection = kept
    return kept


def with_ledger(conversation: Conversation | None) -> Conversation | None:
    """The same with the ledger that its next turn needs, made where nobody waits for it."""
    if conversation is not None:
        ledger_of(conversation)
    return conversation


def made_up(conversation: Conversation) -> Ledger:
    """The ledger from the records alone, in O(records): what a kept one must equal."""
    ledger = Ledger()
    if not conversation.atom_sources:
        return ledger
    for event, source in events_of(conversation):
        ledger.take(event, scorer_for(source))
    return ledger


def events_of(conversation: Conversation) -> Iterator[tuple[Event, AtomSource | None]]:
    """The events of the conversation's ledger in order, each with what its turn said."""
    records = [r for r in conversation.state.records.values() if r.atoms]
    corrections: dict[str, list[str]] = {}
    withdrawn: dict[int, list[Record]] = {}
    for record in conversation.state.records.values():
        entry = revision(record)
        if entry is not None:
            withdrawn.setdefault(entry.turn, []).append(record)
            if entry.by is not None and conversation.state.records[entry.by].turn == entry.turn:
                corrections.setdefault(entry.by, []).append(record.id)
    turns = sorted({*withdrawn, *(record.turn for record in records)})
    arriving = {turn: list(born) for turn, born in groupby(records, lambda each: each.turn)}
    place = 0
    for turn in turns:
        source = conversation.atom_sources.get(turn)
        for record in arriving.get(turn, ()):
            assert source is not None, "a turn that brings atoms says who told them"
            told = told_by(conversation.state, record, source)
            corrects = tuple(corrections.get(record.id, ()))
            for arrival in arrivals(record, told, corrects, place):
                powerless = tuple(ahead for new, ahead in source.powerless if new == record.id)
                yield (
                    arrival._replace(protected=source.protected, powerless=powerless),
                    source,
                )
                place += 1
        for record in withdrawn.get(turn, ()):
            yield Withdrawal(record.id, turn), source


def events_of_turn(
    state: State,
    turn: int,
    born: Sequence[Record],
    revised: Iterable[str],
    source: AtomSource,
    place: int,
) -> Iterator[Event]:
    """The events of one turn: its new records, and what it set out to revise and did."""
    targets = [state.records[id_] for id_ in dict.fromkeys(revised) if id_ in state.records]
    targets = [
        record
        for record in sorted(targets, key=lambda each: each.position)
        if (entry := revision(record)) is not None and entry.turn == turn
    ]
    for record in born:
        if record.atoms:
            told = told_by(state, record, source)
            corrects = tuple(t.id for t in targets if _revised_by(t) == record.id)
            for arrival in arrivals(record, told, corrects, place):
                yield arrival
                place += 1
    for record in targets:
        yield Withdrawal(record.id, turn)


def revision(record: Record) -> TrailEntry | None:
    """What an operation first revised the record by; what follows from atoms is none."""
    return next((entry for entry in record.trail if entry.op == "revise"), None)


def arrivals(
    record: Record, told: Told, corrects: tuple[str, ...], place: int
) -> Iterator[Arrival]:
    """The atoms of one record as they arrive."""
    entry = revision(record)
    is_withdrawn = entry is not None and entry.turn == record.turn
    for offset, atom in enumerate(record.atoms):
        fact = fact_of(atom, told, place + offset)
        yield Arrival(fact, atom.relation, atom.of, corrects, is_withdrawn)


def told_by(state: State, record: Record, source: AtomSource) -> Told:
    """Who told a record's atoms: the role of somebody else is the one that a setup declared."""
    is_speaker = record.speaker == source.speaker
    role = source.role if is_speaker else state.roles.get(record.speaker, "")
    return Told(record.id, record.speaker, role, record.turn, source.told_turn)


def scorer_for(source: AtomSource | None) -> Scorer:
    """The rules as they were for a turn."""
    if source is None or source.supersession is not Supersession.EXPLICIT:
        return RULES
    return RulesScorer(source.supersession)


def _revised_by(record: Record) -> str | None:
    entry = revision(record)
    return None if entry is None else entry.by
