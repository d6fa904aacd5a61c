"""Facts: atoms where they stand in the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, final

from processor.evidence.key import Key, key_of, normalised
from processor.evidence.moment import beginning
from schemas.evidence import Atom, Relation


@final
class Fact(NamedTuple):
    """One atom as a memory keeps it: without the relation that was said with it.

    `value` is as it was written, `said` normalised; `sense` is what it counts as, which is another
    value if it was said, or found, to be the same state as that one.
    `place` counts the atoms before it in the log. `told_turn` is the turn it was meant for, which
    is earlier than `turn` if it fills a turn that was missing. `moment` is the beginning of
    `valid_from`.
    """

    place: int
    key: Key
    entity: str
    attribute: str
    facet: str | None
    value: str
    said: str
    sense: str
    polarity: bool
    valid_from: str | None
    valid_to: str | None
    moment: int | None
    record: str
    source: str
    role: str
    turn: int
    told_turn: int

    def is_older(self, than: Fact) -> bool:
        """Whether its valid time begins before the other's: by date, else by the turn meant."""
        if self.moment is not None and than.moment is not None:
            return self.moment < than.moment
        if self.moment is None and than.moment is None:
            return self.told_turn < than.told_turn
        return False

    def agrees(self, with_: Fact) -> bool:
        """Whether both can be in force: one value, or one is given and another is denied."""
        same = self.sense == with_.sense
        if self.polarity and with_.polarity:
            return same
        return self.polarity == with_.polarity or not same


@final
class Arrival(NamedTuple):
    """A fact on its way in, with what was said about how it stands to others.

    `corrects` are the records that its own record revised as it was introduced; `is_withdrawn` says
    that the record was itself given up in that very turn. `protected` are records that whoever
    told it may not revise: it can contradict what they say, not replace it. `powerless` are records
    with later values whose tellers may not revise its own: it contradicts them, and is not late.
    """

    fact: Fact
    relation: Relation | None = None
    of: tuple[str, ...] | None = None
    corrects: tuple[str, ...] = ()
    is_withdrawn: bool = False
    protected: tuple[str, ...] = ()
    powerless: tuple[str, ...] = ()

    def says(self, records: Iterator[str], disagrees: bool) -> Relation | None:
        """The relation that was said to hold to a fact of these records, if one was."""
        if self.relation is None:
            return None
        applies = disagrees if self.of is None else any(id_ in self.of for id_ in records)
        return self.relation if applies else None


@final
class Told(NamedTuple):
    """Where an atom comes from: record, who said it in which role, and the turns."""

    record: str
    source: str
    role: str
    turn: int
    told_turn: int


def fact_of(atom: Atom, told: Told, place: int) -> Fact:
    """The fact of an atom; one that is said to be unrelated, without a facet, has its own."""
    facet = atom.facet
    if facet is None and atom.relation is Relation.UNRELATED:
        facet = f"as {told.record} has it"
    said = normalised(atom.value)
    return Fact(
        place,
        key_of(atom.entity, atom.attribute, facet),
        atom.entity,
        atom.attribute,
        facet,
        atom.value,
        said,
        said,
        atom.polarity,
        atom.valid_from,
        atom.valid_to,
        beginning(atom.valid_from),
        *told,
    )
