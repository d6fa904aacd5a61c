"""Slots whose values come with dates, as utterances with atoms: what TempLAMA and DyKnow share.

A value with its dates is a spell. Dates are read to their precision: a year begins on its first day
and, as an end, lasts to its last. Where two spells of a key overlap, the one that began later is in
force; if it ends within the other, the other is in force again, and is told again from there (a
value that returns). Values that nothing ends are in force at once: they are told to contradict each
other, since the dates do not decide, unless a facet tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple, final

from processor.evidence.moment import beginning
from replay.evaluate.adapters import moment
from schemas.evidence import Atom, Relation
from schemas.operations import Observe
from schemas.utterance import Utterance

SPEAKER = "source"


@final
class Spell(NamedTuple):
    """One value and its dates, each a year, month or day; without an end it goes on."""

    value: str
    start: str
    end: str | None = None
    facet: str | None = None

    def begins(self) -> int:
        """The first moment of the spell."""
        first = beginning(self.start)
        assert first is not None
        return first


@final
class Slot(NamedTuple):
    """What has a value, and its spells in the order in which they are stored."""

    id: str
    entity: str
    attribute: str
    spells: tuple[Spell, ...]


@final
class Gold(NamedTuple):
    """What the dates of one key say: the value in force, the one before it, and what is odd.

    `several` are the values that nothing ends, if they are more than one. `tied` and `before_tied`
    say that another value begins at the same time as the one in force, or as one of the two, so
    that the dates do not order them.
    """

    facet: str | None
    in_force: str | None
    before: str | None
    several: tuple[str, ...]
    returns: bool
    tied: bool
    before_tied: bool


def after(end: str) -> str:
    """The year, month or day that follows: where a spell with this end is over."""
    parts = [int(part) for part in end.split("-")]
    if len(parts) == 1:
        return f"{parts[0] + 1:04}"
    if len(parts) == 2:
        year, month = (parts[0], parts[1] + 1) if parts[1] < 12 else (parts[0] + 1, 1)
        return f"{year:04}-{month:02}"
    return (date(*parts) + timedelta(days=1)).isoformat()


def golds(slot: Slot) -> tuple[Gold, ...]:
    """What the dates say of each facet of a slot."""
    return tuple(_gold(facet, spells) for facet, spells in _by_facet(slot.spells))


def in_order(slot: Slot) -> Slot:
    """The slot with its spells in the order of time."""
    return slot._replace(spells=tuple(sorted(slot.spells, key=lambda each: each.begins())))


def slot_utterances(slot: Slot) -> Iterator[Utterance]:
    """One utterance per spell in the stored order, and one where it is in force again."""
    again = {facet: _returns(spells) for facet, spells in _by_facet(slot.spells)}
    open_ones = {
        facet: sum(each.end is None for each in spells) for facet, spells in _by_facet(slot.spells)
    }
    place = 0
    for spell in slot.spells:
        more = again[spell.facet].pop(spell, [])
        for start in (spell.start, *more):
            told = spell._replace(start=start)
            disputed = spell.end is None and open_ones[spell.facet] > 1
            yield _utterance(slot, told, place, disputed)
            place += 1


def _utterance(slot: Slot, spell: Spell, place: int, disputed: bool) -> Utterance:
    atom = Atom(
        entity=slot.entity,
        attribute=slot.attribute,
        facet=spell.facet,
        value=spell.value,
        valid_from=spell.start,
        valid_to=None if spell.end is None else after(spell.end),
        relation=Relation.CONTRADICTS if disputed else None,
    )
    until = "" if spell.end is None else f" until {spell.end}"
    text = f"{slot.entity}, {slot.attribute}: {spell.value}, from {spell.start}{until}."
    return Utterance(
        conversation_id=slot.id,
        utterance_id=f"u{place}",
        speaker=SPEAKER,
        text=text,
        at=moment(place),
        operations=(Observe(op="observe", record=f"r{place}", claim=text, atoms=(atom,)),),
    )


def _by_facet(spells: Iterable[Spell]) -> list[tuple[str | None, list[Spell]]]:
    found: dict[str | None, list[Spell]] = {}
    for spell in spells:
        found.setdefault(spell.facet, []).append(spell)
    return list(found.items())


def _gold(facet: str | None, spells: Sequence[Spell]) -> Gold:
    several = tuple(dict.fromkeys(each.value for each in spells if each.end is None))
    runs = _runs(_history(spells))
    at: dict[int, list[str]] = {}
    for value, start in _history(spells):
        at.setdefault(beginning(start) or 0, []).append(value)
    tied = [len(dict.fromkeys(at[start])) > 1 for _, start in runs]
    is_several = len(several) > 1
    return Gold(
        facet,
        in_force=None if is_several else runs[-1][0],
        before=runs[-2][0] if len(runs) > 1 and not is_several else None,
        several=several if is_several else (),
        returns=len(dict.fromkeys(value for value, _ in runs)) < len(runs),
        tied=tied[-1] and not is_several,
        before_tied=any(tied[-2:]),
    )


def _runs(history: Sequence[tuple[str, str]]) -> list[tuple[str, int]]:
    """The values that succeed each other, each with where it begins."""
    runs: list[tuple[str, int]] = []
    for value, start in history:
        if not runs or runs[-1][0] != value:
            runs.append((value, beginning(start) or 0))
    return runs


def _history(spells: Sequence[Spell]) -> list[tuple[str, str]]:
    """Value and beginning of what is in force, one after the other."""
    told = [(each.value, each.start) for each in spells]
    told += [(spell.value, start) for spell, more in _returns(spells).items() for start in more]
    return sorted(told, key=lambda each: beginning(each[1]) or 0)


def _returns(spells: Sequence[Spell]) -> dict[Spell, list[str]]:
    """Where a spell is in force again because one within it is over."""
    found: dict[Spell, list[str]] = {}
    open_ones = [each for each in spells if each.end is None]
    if len(open_ones) > 1:
        return _all_return(spells, open_ones)
    for inner in spells:
        if inner.end is None:
            continue
        over = after(inner.end)
        at = beginning(over) or 0
        covering = [each for each in spells if each.begins() <= at and _ends(each) > at]
        ahead = [each for each in covering if each.begins() < inner.begins()]
        if covering and len(ahead) == len(covering):
            latest = max(ahead, key=lambda each: each.begins())
            if over not in found.setdefault(latest, []):
                found[latest].append(over)
    return found


def _all_return(spells: Sequence[Spell], open_ones: Sequence[Spell]) -> dict[Spell, list[str]]:
    """Values that go on at once are told again once all that began after them is over."""
    ended = [each for each in spells if each.end is not None]
    if not ended:
        return {}
    last = max(ended, key=_ends)
    first = min(each.begins() for each in open_ones)
    assert last.end is not None
    if all(each.begins() <= first for each in ended):
        return {}
    over = after(last.end)
    return {each: [over] for each in open_ones if each.begins() < (beginning(over) or 0)}


def _ends(spell: Spell) -> float:
    return float("inf") if spell.end is None else float(beginning(after(spell.end)) or 0)
