"""Slots whose values come with dates, as utterances with atoms: what TempLAMA and DyKnow share.

A value with its dates is a reign. Dates are read to their precision: a year begins on its first day
and, as an end, lasts to its last. Where two reigns of a key overlap, the one that began later is in
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
class Reign(NamedTuple):
    """One value and its dates, each a year, month or day; without an end it goes on."""

    value: str
    start: str
    end: str | None = None
    facet: str | None = None

    def begins(self) -> int:
        """The first moment of the reign."""
        first = beginning(self.start)
        assert first is not None
        return first


@final
class Slot(NamedTuple):
    """What has a value, and its reigns in the order in which they are stored."""

    id: str
    entity: str
    attribute: str
    reigns: tuple[Reign, ...]


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
    """The year, month or day that follows: where a reign with this end is over."""
    parts = [int(part) for part in end.split("-")]
    if len(parts) == 1:
        return f"{parts[0] + 1:04}"
    if len(parts) == 2:
        year, month = (parts[0], parts[1] + 1) if parts[1] < 12 else (parts[0] + 1, 1)
        return f"{year:04}-{month:02}"
    return (date(*parts) + timedelta(days=1)).isoformat()


def golds(slot: Slot) -> tuple[Gold, ...]:
    """What the dates say of each facet of a slot."""
    return tuple(_gold(facet, reigns) for facet, reigns in _by_facet(slot.reigns))


def in_order(slot: Slot) -> Slot:
    """The slot with its reigns in the order of time."""
    return slot._replace(reigns=tuple(sorted(slot.reigns, key=lambda each: each.begins())))


def slot_utterances(slot: Slot) -> Iterator[Utterance]:
    """One utterance per reign in the stored order, and one where it is in force again."""
    again = {facet: _returns(reigns) for facet, reigns in _by_facet(slot.reigns)}
    open_ones = {
        facet: sum(each.end is None for each in reigns) for facet, reigns in _by_facet(slot.reigns)
    }
    place = 0
    for reign in slot.reigns:
        more = again[reign.facet].pop(reign, [])
        for start in (reign.start, *more):
            told = reign._replace(start=start)
            disputed = reign.end is None and open_ones[reign.facet] > 1
            yield _utterance(slot, told, place, disputed)
            place += 1


def _utterance(slot: Slot, reign: Reign, place: int, disputed: bool) -> Utterance:
    atom = Atom(
        entity=slot.entity,
        attribute=slot.attribute,
        facet=reign.facet,
        value=reign.value,
        valid_from=reign.start,
        valid_to=None if reign.end is None else after(reign.end),
        relation=Relation.CONTRADICTS if disputed else None,
    )
    until = "" if reign.end is None else f" until {reign.end}"
    text = f"{slot.entity}, {slot.attribute}: {reign.value}, from {reign.start}{until}."
    return Utterance(
        conversation_id=slot.id,
        utterance_id=f"u{place}",
        speaker=SPEAKER,
        text=text,
        at=moment(place),
        operations=(Observe(op="observe", record=f"r{place}", claim=text, atoms=(atom,)),),
    )


def _by_facet(reigns: Iterable[Reign]) -> list[tuple[str | None, list[Reign]]]:
    found: dict[str | None, list[Reign]] = {}
    for reign in reigns:
        found.setdefault(reign.facet, []).append(reign)
    return list(found.items())


def _gold(facet: str | None, reigns: Sequence[Reign]) -> Gold:
    several = tuple(dict.fromkeys(each.value for each in reigns if each.end is None))
    runs = _runs(_history(reigns))
    at: dict[int, list[str]] = {}
    for value, start in _history(reigns):
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


def _history(reigns: Sequence[Reign]) -> list[tuple[str, str]]:
    """Value and beginning of what is in force, one after the other."""
    told = [(each.value, each.start) for each in reigns]
    told += [(reign.value, start) for reign, more in _returns(reigns).items() for start in more]
    return sorted(told, key=lambda each: beginning(each[1]) or 0)


def _returns(reigns: Sequence[Reign]) -> dict[Reign, list[str]]:
    """Where a reign is in force again because one within it is over."""
    found: dict[Reign, list[str]] = {}
    open_ones = [each for each in reigns if each.end is None]
    if len(open_ones) > 1:
        return _all_return(reigns, open_ones)
    for inner in reigns:
        if inner.end is None:
            continue
        over = after(inner.end)
        at = beginning(over) or 0
        covering = [each for each in reigns if each.begins() <= at and _ends(each) > at]
        ahead = [each for each in covering if each.begins() < inner.begins()]
        if covering and len(ahead) == len(covering):
            latest = max(ahead, key=lambda each: each.begins())
            if over not in found.setdefault(latest, []):
                found[latest].append(over)
    return found


def _all_return(reigns: Sequence[Reign], open_ones: Sequence[Reign]) -> dict[Reign, list[str]]:
    """Values that go on at once are told again once all that began after them is over."""
    ended = [each for each in reigns if each.end is not None]
    if not ended:
        return {}
    last = max(ended, key=_ends)
    first = min(each.begins() for each in open_ones)
    assert last.end is not None
    if all(each.begins() <= first for each in ended):
        return {}
    over = after(last.end)
    return {each: [over] for each in open_ones if each.begins() < (beginning(over) or 0)}


def _ends(reign: Reign) -> float:
    return float("inf") if reign.end is None else float(beginning(after(reign.end)) or 0)
