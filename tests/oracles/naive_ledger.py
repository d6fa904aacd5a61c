"""The slow ledger: what is in force is worked out from the whole list of events, for each of them.

It shares the facts and the scorer with the real one, and neither the rows nor their update. An atom
is a number; what happened to it is a dictionary; the active set is whoever has not been closed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from processor.evidence.fact import Arrival, Fact
from processor.evidence.ledger import Event, Withdrawal
from processor.evidence.scorer import RULES
from schemas.evidence import Relation


@dataclass
class NaiveRow:
    """The atoms of one key: who is active, how the others ended, and who contradicts whom."""

    facts: list[Fact] = field(default_factory=list)
    ended: dict[int, tuple[Relation | None, bool]] = field(default_factory=dict)
    against: set[frozenset[int]] = field(default_factory=set)

    def active(self) -> list[Fact]:
        """The active set, in the order of the log."""
        return [fact for fact in self.facts if fact.place not in self.ended]

    def groups(self) -> list[list[Fact]]:
        """The active set by what is said and by whom."""
        groups: list[list[Fact]] = []
        for fact in self.active():
            voice = (fact.sense, fact.polarity, fact.source)
            for group in groups:
                if (group[0].sense, group[0].polarity, group[0].source) == voice:
                    group.append(fact)
                    break
            else:
                groups.append([fact])
        return groups

    def unresolved(self) -> bool:
        """Whether two active atoms contradict each other."""
        active = {fact.place for fact in self.active()}
        return any(pair <= active for pair in self.against)

    def value(self) -> str | None:
        """What the earliest active atom that gives a value says; None if they disagree."""
        given = [fact.value for fact in self.active() if fact.polarity]
        return None if self.unresolved() or not given else given[0]


def naive_row(events: list[Event]) -> NaiveRow:
    """The row of the only key of these events."""
    row = NaiveRow()
    for event in events:
        if isinstance(event, Withdrawal):
            for fact in row.active():
                if fact.record == event.record:
                    row.ended[fact.place] = (None, False)
        else:
            _arrive(row, event)
    return row


def _arrive(row: NaiveRow, arrival: Arrival) -> None:
    fact = arrival.fact
    groups = row.groups()
    said = {id(group): _said(arrival, group) for group in groups}
    latest = {id(group): _latest(group) for group in groups}
    late = [
        group for group in groups if fact.is_older(latest[id(group)]) and not _agree(fact, group)
    ]
    row.facts.append(fact)
    if late and not any(said.values()):
        row.ended[fact.place] = (Relation.SUPERSEDES, True)
        return
    stand = [
        (group, said[id(group)] or _by_rule(fact, group, latest[id(group)])) for group in groups
    ]
    agreed = [
        group[0]
        for group, relation in stand
        if relation is Relation.SAME_STATE and group[0].polarity == fact.polarity
    ]
    if agreed and fact.polarity:
        row.facts[-1] = fact._replace(sense=agreed[0].sense)
    for group, relation in stand:
        if relation in (Relation.SUPERSEDES, Relation.REFINES):
            for each in group:
                row.ended[each.place] = (relation, False)
    joined = next((g for g in row.groups() if row.facts[-1] in g), [])
    for group, relation in stand:
        if relation is Relation.CONTRADICTS and group[0] not in joined:
            row.against |= {
                frozenset((mine.place, yours.place)) for mine in joined for yours in group
            }
    _spread(row)


def _spread(row: NaiveRow) -> None:
    """Whoever says the same by the same source is contradicted by the same."""
    for group in row.groups():
        for other in row.groups():
            pairs = {frozenset((a.place, b.place)) for a in group for b in other if a != b}
            if group is not other and pairs & row.against:
                row.against |= pairs


def _said(arrival: Arrival, group: list[Fact]) -> Relation | None:
    if arrival.relation is None:
        return None
    if arrival.of is not None:
        named = any(each.record in arrival.of for each in group)
        return arrival.relation if named else None
    return None if _agree(arrival.fact, group) else arrival.relation


def _agree(fact: Fact, group: list[Fact]) -> bool:
    if fact.polarity != group[0].polarity:
        return fact.sense != group[0].sense
    both_denied = not fact.polarity
    said = {each.said for each in group} | {group[0].sense}
    return both_denied or fact.said in said


def _latest(group: list[Fact]) -> Fact:
    latest = group[0]
    for fact in group[1:]:
        if not fact.is_older(latest):
            latest = fact
    return latest


def _by_rule(fact: Fact, group: list[Fact], latest: Fact) -> Relation:
    return Relation.SAME_STATE if _agree(fact, group) else RULES.relation(fact, latest)
