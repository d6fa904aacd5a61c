"""A row of the ledger, and its update: everything that changes what is in force lives here.

A row is a value; `enter` and `withdraw` give the next one. What is in force is defined by the live
holdings alone: the row is unresolved iff two of them contradict each other, and in force is what
the earliest of them says. Takeover follows the order of the log, so a fact whose valid time is
older than that of a live one with which it disagrees enters as already closed, marked late.
"""

from __future__ import annotations

from collections.abc import Container
from enum import Enum
from typing import NamedTuple, final

from processor.evidence.fact import Arrival, Fact
from processor.evidence.key import Key
from processor.evidence.scorer import Scorer
from schemas.evidence import Relation

LIVE_MAX = 128
"""How many holdings a row has at a time: what would be one more is not taken in."""
CONTRADICTED_MAX = 64
"""How many holdings a new one is in conflict with: the one in force, and the newest."""


class Keep(Enum):
    """What a memory keeps of a row."""

    LIVE = "live"
    CLOSED = "closed"
    RELATIONS = "relations"


@final
class Holding(NamedTuple):
    """Live facts of one source that say the same, in the order they came; judged as one.

    `moment` is the latest beginning among them, `told_turn` the latest turn meant.
    """

    facts: tuple[Fact, ...]
    values: tuple[str, ...]
    latest: Fact

    @property
    def place(self) -> int:
        """What tells holdings of a row apart: the place of the first fact."""
        return self.facts[0].place

    def records(self) -> tuple[str, ...]:
        """The records of the facts, each once."""
        return tuple(dict.fromkeys(fact.record for fact in self.facts))

    def takes(self, fact: Fact) -> bool:
        """Whether the fact says what these say, by the same source."""
        first = self.facts[0]
        return (fact.sense, fact.polarity, fact.source) == (
            first.sense,
            first.polarity,
            first.source,
        )

    def with_(self, fact: Fact) -> Holding:
        """The holding with one fact more."""
        values = self.values if fact.said in self.values else (*self.values, fact.said)
        latest = self.latest if fact.is_older(self.latest) else fact
        return Holding((*self.facts, fact), values, latest)


@final
class Closed(NamedTuple):
    """A fact that is in force no longer, or never was, and how that came.

    `by` is the place of the fact that closed it, `turn` when; both with the relation None if its
    record was withdrawn. `holding` is the place of the holding it belonged to.
    """

    fact: Fact
    holding: int
    relation: Relation | None
    by: int | None
    turn: int
    is_late: bool


@final
class Conflict(NamedTuple):
    """Two holdings, by place, that contradict each other since this turn."""

    new: int
    old: int
    turn: int


@final
class Row(NamedTuple):
    """What the ledger has on one key; `live` is in the order of the places."""

    key: Key
    live: tuple[Holding, ...] = ()
    closed: tuple[Closed, ...] = ()
    conflicts: tuple[Conflict, ...] = ()

    def open_conflicts(self) -> tuple[tuple[Holding, Holding], ...]:
        """The pairs of live holdings that contradict each other, newer first in a pair."""
        live = {holding.place: holding for holding in self.live}
        return tuple(
            (live[c.new], live[c.old]) for c in self.conflicts if c.new in live and c.old in live
        )

    @property
    def is_unresolved(self) -> bool:
        """Whether the live holdings contradict each other."""
        return bool(self.conflicts) and bool(self.open_conflicts())

    def in_force(self) -> Holding | None:
        """The earliest live holding that gives a value, whether or not it is contradicted."""
        return next((holding for holding in self.live if holding.facts[0].polarity), None)


@final
class Entered(NamedTuple):
    """A row after one more fact, and what that means for the records behind it.

    `superseded` are the holdings it replaced; `contradicted` those it disputes; `late_behind` is
    the fact it came too late for. `is_left_out` says that the row was full. `beside` are the other
    records of its own holding, which are now in dispute with what is `newly_contradicted` too.
    """

    row: Row
    superseded: tuple[Holding, ...] = ()
    contradicted: tuple[Holding, ...] = ()
    late_behind: Fact | None = None
    is_left_out: bool = False
    beside: tuple[str, ...] = ()
    newly_contradicted: tuple[Holding, ...] = ()


def ahead(row: Row, fact: Fact) -> tuple[Fact, ...]:
    """The facts of the row that the fact disagrees with and is older than, one of each holding."""
    return tuple(
        holding.latest
        for holding in row.live
        if fact.is_older(holding.latest) and not _agree(fact, holding)
    )


def enter(row: Row, arrival: Arrival, scorer: Scorer, keep: Keep = Keep.RELATIONS) -> Entered:
    """The row after the fact has arrived."""
    fact = arrival.fact
    if arrival.is_withdrawn:
        closed = Closed(fact, fact.place, None, None, fact.turn, is_late=False)
        return Entered(_close(row, (), (closed,), keep))
    judged = _judge_all(row, arrival, scorer)
    if judged is None:
        newest = max(
            (each for each in ahead(row, fact) if each.record not in arrival.powerless),
            key=lambda each: (each.moment or 0, each.told_turn, each.place),
        )
        late = Closed(fact, fact.place, Relation.SUPERSEDES, newest.place, fact.turn, is_late=True)
        return Entered(_close(row, (), (late,), keep), late_behind=newest)
    gone = {h.place: r for h, r in judged if r in (Relation.SUPERSEDES, Relation.REFINES)}
    agreed = [h for h, relation in judged if relation is Relation.SAME_STATE]
    root = next((h.facts[0] for h in agreed if h.facts[0].polarity == fact.polarity), None)
    if root is not None and fact.polarity:
        fact = fact._replace(sense=root.sense)
    against = tuple(
        h for h, relation in judged if relation is Relation.CONTRADICTS and not h.takes(fact)
    )
    closing = tuple(
        Closed(each, holding.place, gone[holding.place], fact.place, fact.turn, is_late=False)
        for holding in row.live
        if holding.place in gone
        for each in holding.facts
    )
    after = _close(row, tuple(gone), closing, keep)
    superseded = tuple(h for h in row.live if gone.get(h.place) is Relation.SUPERSEDES)
    if len(after.live) >= LIVE_MAX and not any(h.takes(fact) for h in after.live):
        return Entered(after, superseded, _foremost(after, against), is_left_out=True)
    admitted = _admit(after, fact, _foremost(after, against))
    mine = next(holding for holding in admitted.live if holding.facts[-1].place == fact.place)
    contradicted = _at(admitted, _in_conflict(admitted, mine.place))
    new = {conflict.old for conflict in admitted.conflicts[len(after.conflicts) :]}
    return Entered(
        admitted,
        superseded,
        _foremost(admitted, contradicted),
        beside=tuple(id_ for id_ in mine.records() if id_ != fact.record) if new else (),
        newly_contradicted=_at(admitted, new),
    )


def _at(row: Row, places: Container[int]) -> tuple[Holding, ...]:
    return tuple(holding for holding in row.live if holding.place in places)


def withdraw(row: Row, record: str, turn: int, keep: Keep = Keep.RELATIONS) -> Row:
    """The row after a record was given up: its live facts go, the others of their source stay."""
    live: list[Holding] = []
    closing: list[Closed] = []
    moved: dict[int, int] = {}
    for holding in row.live:
        staying = tuple(fact for fact in holding.facts if fact.record != record)
        if len(staying) == len(holding.facts):
            live.append(holding)
            continue
        closing += (
            Closed(fact, holding.place, None, None, turn, is_late=False)
            for fact in holding.facts
            if fact.record == record
        )
        if staying:
            kept = _holding(staying)
            if kept.place != holding.place:
                moved[holding.place] = kept.place
            live.append(kept)
    if not closing:
        return row
    live.sort(key=lambda holding: holding.place)
    renamed = tuple(
        Conflict(moved.get(c.new, c.new), moved.get(c.old, c.old), c.turn)
        for c in row.conflicts
        if c.new in moved or c.old in moved
    )
    after = row._replace(live=tuple(live), conflicts=row.conflicts + renamed)
    return _close(after, (), tuple(closing), keep)


def _judge_all(row: Row, arrival: Arrival, scorer: Scorer) -> list[tuple[Holding, Relation]] | None:
    """How the fact stands to each live holding; None if it comes too late.

    What was said of it, with the atom or by the revision of a record, wins over its date.
    """
    fact = arrival.fact
    said = [_said(arrival, holding) for holding in row.live]
    if not any(said) and any(each.record not in arrival.powerless for each in ahead(row, fact)):
        return None
    return [
        (holding, told or _permitted(_by_rule(arrival, holding, scorer), arrival, holding))
        for holding, told in zip(row.live, said, strict=True)
    ]


def _said(arrival: Arrival, holding: Holding) -> Relation | None:
    disagrees = not _agree(arrival.fact, holding)
    said = arrival.says((each.record for each in holding.facts), disagrees)
    if said is Relation.REFINES and _is_protected(arrival, holding):
        return None  # the rules tell whether it is finer, which takes nothing away
    if said is not None or not disagrees:
        return said and _permitted(said, arrival, holding)
    corrects = any(each.record in arrival.corrects for each in holding.facts)
    return Relation.SUPERSEDES if corrects else None


def _permitted(relation: Relation, arrival: Arrival, holding: Holding) -> Relation:
    """The relation, but that what may not be replaced is contradicted."""
    if relation is Relation.SUPERSEDES and _is_protected(arrival, holding):
        return Relation.CONTRADICTS
    return relation


def _is_protected(arrival: Arrival, holding: Holding) -> bool:
    return any(each.record in arrival.protected for each in holding.facts)


def _by_rule(arrival: Arrival, holding: Holding, scorer: Scorer) -> Relation:
    if _agree(arrival.fact, holding):
        return Relation.SAME_STATE
    relation = scorer.relation(arrival.fact, holding.latest)
    if relation is not Relation.SUPERSEDES or not arrival.fact.is_older(holding.latest):
        return relation
    return Relation.CONTRADICTS if holding.latest.record in arrival.powerless else relation


def _agree(fact: Fact, holding: Holding) -> bool:
    first = holding.facts[0]
    return fact.agrees(first) or (fact.polarity == first.polarity and fact.said in holding.values)


def _admit(row: Row, fact: Fact, against: tuple[Holding, ...]) -> Row:
    """The row with the fact live, beside those it contradicts."""
    known: set[int] = set()
    for index, holding in enumerate(row.live):
        if holding.takes(fact):
            joined = holding.with_(fact)
            live = (*row.live[:index], joined, *row.live[index + 1 :])
            known = _in_conflict(row, joined.place) if against else known
            break
    else:
        joined = Holding((fact,), (fact.said,), fact)
        live = (*row.live, joined)
    new = tuple(
        Conflict(joined.place, other.place, fact.turn)
        for other in against
        if other.place not in known
    )
    return row._replace(live=live, conflicts=row.conflicts + new)


def _in_conflict(row: Row, place: int) -> set[int]:
    """The places of the holdings that the one at this place is in conflict with, or was."""
    return {
        old if new == place else new
        for new, old, _ in row.conflicts
        if new == place or old == place
    }


def _foremost(row: Row, against: tuple[Holding, ...]) -> tuple[Holding, ...]:
    """What a conflict is noted with: each further one would cost every later turn."""
    if len(against) <= CONTRADICTED_MAX:
        return against
    in_force = row.in_force()
    first = tuple(h for h in against[: -CONTRADICTED_MAX + 1] if h is in_force)
    return (*first, *against[-CONTRADICTED_MAX + len(first) :])


def _close(row: Row, gone: tuple[int, ...], closing: tuple[Closed, ...], keep: Keep) -> Row:
    """The row without these holdings, and what is kept of the facts that are closed."""
    live = tuple(h for h in row.live if h.place not in gone) if gone else row.live
    if keep is Keep.LIVE:
        places = [holding.place for holding in live]
        conflicts = tuple(c for c in row.conflicts if c.new in places and c.old in places)
        return Row(row.key, live, (), conflicts)
    if keep is Keep.CLOSED:
        closing = tuple(each._replace(relation=None, by=None) for each in closing)
    return row._replace(live=live, closed=row.closed + closing)


def _holding(facts: tuple[Fact, ...]) -> Holding:
    latest = facts[0]
    for fact in facts[1:]:
        latest = latest if fact.is_older(latest) else fact
    return Holding(facts, tuple(dict.fromkeys(fact.said for fact in facts)), latest)
