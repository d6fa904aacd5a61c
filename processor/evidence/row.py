"""A row of the ledger, and its update: everything that changes what is in force lives here.

A row is a value; `enter` and `withdraw` give the next one. What is in force is defined by the live
holdings alone: the row is unresolved iff two of them contradict each other, and in force is what
the earliest of them says. Takeover follows the order of the log, so a fact whose valid time is
older than that of a live one with which it disagrees enters as already closed, marked late.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, final

from processor.evidence.appended import Appended
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

    `against` are places of earlier holdings that it is in conflict with, or was.
    """

    facts: tuple[Fact, ...]
    values: tuple[str, ...]
    latest: Fact
    against: frozenset[int] = frozenset()

    @property
    def place(self) -> int:
        """What tells holdings of a row apart: the place of the first fact."""
        return self.facts[0].place

    def records(self) -> tuple[str, ...]:
        """The records of the facts, each once."""
        return tuple(dict.fromkeys(fact.record for fact in self.facts))

    def newest_records(self, most: int) -> tuple[str, ...]:
        """The last of its records: the facts of one record stand together."""
        newest: dict[str, None] = {}
        for fact in reversed(self.facts):
            newest[fact.record] = None
            if len(newest) == most:
                break
        return tuple(reversed(newest))

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
        return Holding((*self.facts, fact), values, latest, self.against)


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
    closed: Appended[Closed] = Appended()
    conflicts: Appended[Conflict] = Appended()

    def open_conflicts(self) -> tuple[tuple[Holding, Holding], ...]:
        """The pairs of live holdings that contradict each other, newer first in a pair."""
        live = {holding.place: holding for holding in self.live}
        return tuple(
            (live[c.new], live[c.old]) for c in self.conflicts if c.new in live and c.old in live
        )

    @property
    def is_unresolved(self) -> bool:
        """Whether the live holdings contradict each other."""
        places = {holding.place for holding in self.live}
        return any(not holding.against.isdisjoint(places) for holding in self.live)

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
    admitted, mine, new = _admit(after, fact, _foremost(after, against))
    contradicted = _in_conflict(admitted, mine)
    return Entered(
        admitted,
        superseded,
        _foremost(admitted, contradicted),
        beside=tuple(id_ for id_ in mine.records() if id_ != fact.record) if new else (),
        newly_contradicted=tuple(h for h in admitted.live if h.place in new),
    )


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
            kept = _holding(staying, holding.against)
            if kept.place != holding.place:
                moved[holding.place] = kept.place
            live.append(kept)
    if not closing:
        return row
    live.sort(key=lambda holding: holding.place)
    after = row._replace(live=tuple(live))
    if moved:
        after = _renamed(after, moved)
    return _close(after, (), tuple(closing), keep)


def _renamed(row: Row, moved: dict[int, int]) -> Row:
    """The row after holdings got other places: their conflicts are those of the new ones too."""
    renamed = tuple(
        Conflict(moved.get(c.new, c.new), moved.get(c.old, c.old), c.turn)
        for c in row.conflicts
        if c.new in moved or c.old in moved
    )
    live = tuple(
        h._replace(against=frozenset(moved.get(place, place) for place in h.against))
        for h in row.live
    )
    return row._replace(live=live, conflicts=row.conflicts.plus(renamed))


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
    return Relation.SUPERSEDES if _any_of(arrival.corrects, holding) else None


def _permitted(relation: Relation, arrival: Arrival, holding: Holding) -> Relation:
    """The relation, but that what may not be replaced is contradicted."""
    if relation is Relation.SUPERSEDES and _is_protected(arrival, holding):
        return Relation.CONTRADICTS
    return relation


def _is_protected(arrival: Arrival, holding: Holding) -> bool:
    return _any_of(arrival.protected, holding)


def _any_of(records: tuple[str, ...], holding: Holding) -> bool:
    """Whether a fact of the holding is one of these records', of which there mostly are none."""
    return bool(records) and any(each.record in records for each in holding.facts)


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


def _admit(
    row: Row, fact: Fact, against: tuple[Holding, ...]
) -> tuple[Row, Holding, frozenset[int]]:
    """The row with the fact live, beside those it contradicts.

    With it the holding that the fact is in, and the places of those this is newly in conflict with.
    """
    place = next((i for i, holding in enumerate(row.live) if holding.takes(fact)), len(row.live))
    is_known = place < len(row.live)
    mine = row.live[place].with_(fact) if is_known else Holding((fact,), (fact.said,), fact)
    known = {h.place for h in _in_conflict(row, mine)} if is_known and against else ()
    others = [other.place for other in against if other.place not in known]
    new = frozenset(others)
    if new:
        mine = mine._replace(against=mine.against | new)
    conflicts = [Conflict(mine.place, other, fact.turn) for other in others]
    admitted = row._replace(
        live=(*row.live[:place], mine, *row.live[place + 1 :]),
        conflicts=row.conflicts.plus(conflicts),
    )
    return admitted, mine, new


def _in_conflict(row: Row, mine: Holding) -> tuple[Holding, ...]:
    """The live holdings that one of them is in conflict with, or was."""
    place, against = mine.place, mine.against
    return tuple(h for h in row.live if h.place in against or place in h.against)


def _foremost(row: Row, against: tuple[Holding, ...]) -> tuple[Holding, ...]:
    """What a conflict is noted with: each further one would cost every later turn."""
    if len(against) <= CONTRADICTED_MAX:
        return against
    in_force = row.in_force()
    first = tuple(h for h in against[: -CONTRADICTED_MAX + 1] if h is in_force)
    return (*first, *against[-CONTRADICTED_MAX + len(first) :])


def as_kept(row: Row, keep: Keep) -> Row:
    """What a memory that keeps so much has of a whole row: what its own fold leaves."""
    match keep:
        case Keep.LIVE:
            places = {holding.place for holding in row.live}
            conflicts = [c for c in row.conflicts if c.new in places and c.old in places]
            return Row(row.key, row.live, conflicts=Appended(conflicts))
        case Keep.CLOSED:
            return row._replace(closed=Appended([_untyped(each) for each in row.closed]))
        case Keep.RELATIONS:
            return row


def _close(row: Row, gone: tuple[int, ...], closing: tuple[Closed, ...], keep: Keep) -> Row:
    """The row without these holdings, and what is kept of the facts that are closed."""
    live = tuple(h for h in row.live if h.place not in gone) if gone else row.live
    if keep is Keep.LIVE:
        return as_kept(row._replace(live=live), keep)
    if keep is Keep.CLOSED:
        closing = tuple(map(_untyped, closing))
    return row._replace(live=live, closed=row.closed.plus(closing))


def _untyped(closed: Closed) -> Closed:
    return closed._replace(relation=None, by=None)


def _holding(facts: tuple[Fact, ...], against: frozenset[int]) -> Holding:
    latest = facts[0]
    for fact in facts[1:]:
        latest = latest if fact.is_older(latest) else fact
    return Holding(facts, tuple(dict.fromkeys(fact.said for fact in facts)), latest, against)
