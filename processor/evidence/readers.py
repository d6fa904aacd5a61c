"""Deterministic readers: what a memory class answers to a query, from what it keeps alone.

A class answers the query classes that its state is enough for; anything else is `not_kept`, which
is an answer too: it is what the class costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from processor.evidence.answers import NOT_KEPT, NOTHING, Answer, Found, Query, Side
from processor.evidence.bm25 import ranked
from processor.evidence.fact import Fact
from processor.evidence.key import Key
from processor.evidence.memories import TEXT_CLASSES, Memory
from processor.evidence.moment import beginning
from processor.evidence.row import Holding, Row
from processor.evidence.timeline import Period, periods
from schemas.evidence import MemoryClass, QueryClass, Relation

RETRIEVED = 22
"""How many passages rag_top_k hands over, as in the paper."""

_COARSE = (QueryClass.SNAPSHOT, QueryClass.STATUS)
_RETAINED = (*_COARSE, QueryClass.PROVENANCE, QueryClass.AS_OF)
COVERED: dict[MemoryClass, tuple[QueryClass, ...]] = {
    **dict.fromkeys(MemoryClass, (QueryClass.SNAPSHOT,)),
    MemoryClass.COARSE_DISCARD: _COARSE,
    MemoryClass.COARSE_RETAIN: _RETAINED,
    MemoryClass.LEDGER: tuple(QueryClass),
}
"""What each class has the state to answer."""


def ask(memory: Memory, query: Query, retrieved: int = RETRIEVED) -> Answer:
    """What the memory answers."""
    if query.query_class not in COVERED[memory.memory_class]:
        return NOT_KEPT
    match memory.memory_class:
        case MemoryClass.COARSE_DISCARD | MemoryClass.COARSE_RETAIN | MemoryClass.LEDGER:
            row = memory.rows.get(query.key)
            return NOTHING if row is None else _ask_row(row, query)
        case MemoryClass.RENDER_MATCHED:
            row = memory.rows.get(query.key)
            return NOTHING if row is None else _newest([f for h in row.live for f in h.facts])
        case MemoryClass.GRAPHRAG_LITE:
            return _most_told(memory.facts(query.key))
        case MemoryClass.GRAPHRAG_ABSTAIN:
            return _unless_they_differ(memory.facts(query.key))
        case MemoryClass.LATEST_ONLY | MemoryClass.TIMESTAMP_RERANK | MemoryClass.METADATA_ONLY:
            return _newest(memory.facts(query.key))
        case MemoryClass.DIRECT_CONTEXT | MemoryClass.RAG_TOP_K:
            return _read(memory, query.key, retrieved)
        case _:
            assert_never(memory.memory_class)


def passages_for(memory: Memory, question: str, retrieved: int = RETRIEVED) -> tuple[int, ...]:
    """The places of the passages that a reader of words is handed, in the order of the log."""
    assert memory.memory_class in TEXT_CLASSES
    if memory.memory_class is MemoryClass.DIRECT_CONTEXT:
        return tuple(range(len(memory.passages)))
    best = ranked([passage.text for passage in memory.passages], question)
    return tuple(sorted(best[:retrieved]))


def _ask_row(row: Row, query: Query) -> Answer:
    match query.query_class:
        case QueryClass.SNAPSHOT:
            return _snapshot(row)
        case QueryClass.STATUS:
            return _status(row)
        case QueryClass.PROVENANCE:
            return _provenance(row)
        case QueryClass.CHANGE_TYPE:
            return _change_type(row)
        case QueryClass.CONFLICT_RELATION:
            return _conflict_relation(row)
        case QueryClass.AS_OF:
            if query.turn is not None:
                return _after_turn(row, query.turn)
            return _at_time(row, query.at)
        case _:
            assert_never(query.query_class)


def _snapshot(row: Row) -> Answer:
    """The value in force, or abstain."""
    if row.is_unresolved:
        return Answer(Found.ABSTAIN, sides=_sides(row))
    return _in_force(row.in_force(), row.live)


def _in_force(holding: Holding | None, live: tuple[Holding, ...]) -> Answer:
    if holding is None:
        return NOTHING
    given = [fact for each in live if each.facts[0].polarity for fact in each.facts]
    dated = [fact for fact in given if fact.moment is not None]
    since = min(dated, key=lambda fact: (fact.moment or 0, fact.place)) if dated else None
    return Answer(
        Found.VALUE,
        holding.facts[0].value,
        tuple(dict.fromkeys(fact.record for fact in given)),
        valid_from=None if since is None else since.valid_from,
        valid_to=holding.latest.valid_to,
    )


def _status(row: Row) -> Answer:
    """Whether the key is in conflict."""
    if row.is_unresolved:
        return Answer(Found.VALUE, "unresolved", sides=_sides(row))
    return Answer(Found.VALUE, "ok")


def _conflict_relation(row: Row) -> Answer:
    """Which atoms are in conflict, by which relation."""
    if not row.is_unresolved:
        return NOTHING
    sides = _sides(row)
    records = tuple(dict.fromkeys(record for side in sides for record in side.records))
    return Answer(
        Found.VALUE,
        Relation.CONTRADICTS.value,
        records,
        sides=sides,
        relation=Relation.CONTRADICTS,
    )


def _sides(row: Row) -> tuple[Side, ...]:
    """The live holdings that contradict another, in the order they came."""
    pairs = row.open_conflicts()
    places = dict.fromkeys(holding.place for pair in pairs for holding in pair)
    return tuple(_side_of(holding.facts) for holding in row.live if holding.place in places)


def _side_of(facts: Sequence[Fact]) -> Side:
    first = facts[0]
    value = first.value if first.polarity else f"not {first.value}"
    return Side(value, tuple(dict.fromkeys(fact.record for fact in facts)))


def _provenance(row: Row) -> Answer:
    """The value in force just before the present one."""
    if row.is_unresolved:
        return Answer(Found.ABSTAIN, sides=_sides(row))
    prior = _prior(row)
    if prior is None:
        return NOTHING
    if prior.is_contested:
        return Answer(Found.ABSTAIN, sides=(Side(prior.value, prior.records()),))
    return _period_answer(prior)


def _change_type(row: Row) -> Answer:
    """Whether the last change refined the value or replaced it."""
    if row.is_unresolved:
        return Answer(Found.ABSTAIN, sides=_sides(row))
    prior = _prior(row)
    relation = None if prior is None else prior.change()
    if prior is None or relation is None:
        return NOTHING
    word = "refined" if relation is Relation.REFINES else "replaced"
    return Answer(Found.VALUE, word, prior.records(), relation=relation)


def _prior(row: Row) -> Period | None:
    """The period before the one that is in force; the last one if none is."""
    given = [period for period in periods(row) if period.polarity]
    current = row.in_force()
    if current is None:
        return given[-1] if given else None
    sense = current.facts[0].sense
    index = max((i for i, period in enumerate(given) if period.is_live), default=len(given) - 1)
    return next((p for p in given[:index][::-1] if p.entries[0].fact.sense != sense), None)


def _after_turn(row: Row, turn: int) -> Answer:
    """The value that was in force once this turn was folded."""
    present = [
        (fact, holding.place) for holding in row.live for fact in holding.facts if fact.turn <= turn
    ] + [
        (closed.fact, closed.holding)
        for closed in row.closed
        if closed.fact.turn <= turn < closed.turn and not closed.is_late
    ]
    holdings = dict.fromkeys(holding for _, holding in present)
    for conflict in row.conflicts:
        if conflict.turn <= turn and conflict.new in holdings and conflict.old in holdings:
            return Answer(
                Found.ABSTAIN,
                sides=tuple(
                    _side_of([fact for fact, holding in present if holding == side])
                    for side in (conflict.old, conflict.new)
                ),
            )
    given = sorted((fact for fact, _ in present if fact.polarity), key=lambda fact: fact.place)
    if not given:
        return NOTHING
    return Answer(Found.VALUE, given[0].value, tuple(dict.fromkeys(f.record for f in given)))


def _at_time(row: Row, at: str | None) -> Answer:
    """The value in force at a time, by the valid times that were given."""
    moment = beginning(at)
    if moment is None:
        return _snapshot(row)
    then = [period for period in periods(row) if period.polarity and _covers(period, moment)]
    values = dict.fromkeys(period.entries[0].fact.sense for period in then)
    if len(values) > 1:
        sides = tuple(Side(period.value, period.records()) for period in then)
        return Answer(Found.ABSTAIN, sides=sides)
    return _period_answer(then[-1]) if then else NOTHING


def _covers(period: Period, moment: int) -> bool:
    start, end = beginning(period.valid_from), beginning(period.valid_to)
    return start is not None and start <= moment and (end is None or moment < end)


def _period_answer(period: Period) -> Answer:
    return Answer(Found.VALUE, period.value, period.records(), period.valid_from, period.valid_to)


def _newest(facts: Sequence[Fact]) -> Answer:
    """The value with the newest time; of those without one, the newest in the log."""
    given = [fact for fact in facts if fact.polarity]
    if not given:
        return NOTHING
    newest = max(given, key=lambda fact: (fact.moment or 0, fact.told_turn, fact.place))
    return Answer(Found.VALUE, newest.value, (newest.record,), newest.valid_from, newest.valid_to)


def _most_told(facts: tuple[Fact, ...]) -> Answer:
    """The value that was told most often, of several the newest."""
    given = [fact for fact in facts if fact.polarity]
    if not given:
        return NOTHING
    told: dict[str, list[Fact]] = {}
    for fact in given:
        told.setdefault(fact.said, []).append(fact)
    most = max(told.values(), key=lambda same: (len(same), same[-1].place))
    return Answer(Found.VALUE, most[0].value, tuple(dict.fromkeys(f.record for f in most)))


def _unless_they_differ(facts: tuple[Fact, ...]) -> Answer:
    """The only value, or abstain."""
    answer = _most_told(facts)
    sides: dict[tuple[str, bool], list[Fact]] = {}
    for fact in facts:
        sides.setdefault((fact.said, fact.polarity), []).append(fact)
    if len(sides) < 2:
        return answer
    return Answer(Found.ABSTAIN, sides=tuple(_side_of(side) for side in sides.values()))


def _read(memory: Memory, key: Key, retrieved: int) -> Answer:
    """What a perfect reader of single passages says: the newest value among those it was handed."""
    places = passages_for(memory, " ".join(part for part in key if part), retrieved)
    facts = [fact for place in places for fact in memory.passages[place].facts if fact.key == key]
    return _newest(facts)
