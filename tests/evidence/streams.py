"""Streams of atoms about one key or several, as events of a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import orjson

from processor.evidence.fact import Arrival, Told, fact_of
from processor.evidence.ledger import Event, Ledger, Withdrawal
from processor.evidence.memories import Memory
from processor.evidence.row import Row
from schemas.evidence import Atom, MemoryClass, Relation

VALUES = ("30 s", "60 s", "60 s on linux", "90 s", "30 s")
SOURCES = ("ann", "bob", "ann", "eve")
YEARS = (None, None, "2010", "2012", "2012-05", "2015", "2018-03-01")


def arrival(
    place: int, value: str, source: str = "ann", turn: int | None = None, **atom: object
) -> Arrival:
    """One atom of the key (pool, timeout), told in a record and a turn of its own."""
    told_turn = place + 1 if turn is None else turn
    given = {"entity": "pool", "attribute": "timeout", "value": value, **atom}
    read = Atom.model_validate_json(orjson.dumps(given))
    told = Told(f"r{place}", source, "user", place + 1, told_turn)
    return Arrival(fact_of(read, told, place), read.relation, read.of)


def random_events(seed: int, length: int = 7, *, typed: bool = True) -> list[Event]:
    """Atoms of one key with and without dates, polarity and relations, and withdrawals."""
    random = Random(seed)
    events: list[Event] = []
    count = 0
    for place in range(length):
        if count and random.random() < 0.12:
            events.append(Withdrawal(f"r{random.randrange(count)}", place + 1))
            continue
        relation, of = None, None
        if typed and random.random() < 0.3:
            relation = random.choice([each for each in Relation if each is not Relation.UNRELATED])
            if count and random.random() < 0.5:
                of = (f"r{random.randrange(count)}",)
        event = arrival(
            count,
            random.choice(VALUES),
            random.choice(SOURCES),
            valid_from=random.choice(YEARS),
            polarity=random.random() < 0.9,
            relation=relation,
            of=of,
        )
        fact = event.fact._replace(turn=place + 1, told_turn=place + 1)
        events.append(event._replace(fact=fact))
        count += 1
    return events


def ledger(events: Iterable[Event]) -> Ledger:
    """The ledger after these events."""
    folded = Ledger()
    folded.take_all(events)
    return folded


def row(events: Sequence[Event]) -> Row:
    """The only row after these events."""
    (only,) = ledger(events).rows.values()
    return only


def memory(memory_class: MemoryClass, events: Iterable[Event]) -> Memory:
    """A memory of one class after these events."""
    folded = Memory(memory_class)
    folded.take_all(events)
    return folded
