"""Streams of our own about one key: what is known of each, so that every answer has a gold one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple, final

from processor.evidence.fact import Arrival, Fact, Told, fact_of
from processor.evidence.memories import Memory
from processor.evidence.scorer import RULES, Scorer
from schemas.evidence import Atom, MemoryClass, Relation

ENTITY, ATTRIBUTE = "connection pool", "timeout"
MONOTONIC, REVERTED, CONFLICT = "monotonic", "reverted-revert", "cross-source conflict"
REFINES, TAKEOVER = "refines", "taken over by another source"
STRATA = (MONOTONIC, REVERTED, CONFLICT, REFINES, TAKEOVER)
_SOURCES = ("ann", "bob", "eve", "kim")
_PLATFORMS = ("linux", "windows", "the test cluster", "older machines")


@final
class Step(NamedTuple):
    """One atom: its value and source, and its true relation to what is live (None: the first)."""

    value: str
    source: str
    relation: Relation | None = None
    of: tuple[str, ...] | None = None


@final
class Stream(NamedTuple):
    """Atoms in order; `gold` is the value in force (None: abstain), `before` the one before it."""

    id: str
    stratum: str
    steps: tuple[Step, ...]
    gold: str | None
    before: str | None = None

    def arrivals(self, typed: bool) -> Iterator[Arrival]:
        """The atoms as they arrive, with their true relations or without."""
        for place, step in enumerate(self.steps):
            atom = Atom(
                entity=ENTITY,
                attribute=ATTRIBUTE,
                value=step.value,
                valid_from=f"{2010 + place}",
                relation=step.relation if typed else None,
                of=step.of if typed else None,
            )
            told = Told(f"r{place}", step.source, "user", place + 1, place + 1)
            yield Arrival(fact_of(atom, told, place), atom.relation, atom.of)


def streams(seed: int, each: int) -> tuple[Stream, ...]:
    """So many streams of each stratum, by the seed."""
    random = Random(seed)
    made: list[Stream] = []
    for number in range(each):
        first, second, third = random.sample(range(10, 99), 3)
        one, other = random.sample(_SOURCES, 2)
        values = [f"{first} s", f"{second} s", f"{third} s"]
        finer = f"{values[0]} on {random.choice(_PLATFORMS)}"
        replaces = Relation.SUPERSEDES
        steps = {
            MONOTONIC: ((0, one, None), (1, one, replaces), (2, one, replaces)),
            REVERTED: ((0, one, None), (1, one, replaces), (0, one, replaces)),
            CONFLICT: ((0, one, None), (1, other, Relation.CONTRADICTS)),
            TAKEOVER: ((0, one, None), (1, other, replaces)),
        }
        for stratum, listed in steps.items():
            told = tuple(Step(values[place], source, said) for place, source, said in listed)
            gold = None if stratum == CONFLICT else told[-1].value
            before = None if stratum == CONFLICT else told[-2].value
            made.append(Stream(f"{stratum} {number}", stratum, told, gold, before))
        refined = (Step(values[0], one), Step(finer, one, Relation.REFINES))
        made.append(Stream(f"{REFINES} {number}", REFINES, refined, finer, values[0]))
    return tuple(made)


def pairs(count: int) -> tuple[Stream, ...]:
    """Streams that come in twos, alike in values, times and sources.

    In the first the third atom supersedes the second, so the first value is in force again; in the
    second it contradicts it, so nobody knows. What makes no use of the relation sees one stream.
    """
    made: list[Stream] = []
    for number in range(count):
        values = (f"{number} s", f"{number + 1} s", f"{number} s")
        sources = ("ann", "bob", ("eve", "ann", "bob")[number % 3])
        for stratum, relation in ((REVERTED, Relation.SUPERSEDES), (CONFLICT, None)):
            said = relation or Relation.CONTRADICTS
            steps = tuple(
                Step(value, source, said if place == 2 else None, ("r1",) if place == 2 else None)
                for place, (value, source) in enumerate(zip(values, sources, strict=True))
            )
            gold = values[0] if relation else None
            made.append(Stream(f"{stratum} {number}", stratum, steps, gold))
    return tuple(made)


def memory_of_stream(
    memory_class: MemoryClass, arrivals: Sequence[Arrival], scorer: Scorer = RULES
) -> Memory:
    """A memory of the class after the atoms."""
    memory = Memory(memory_class)
    memory.take_all(arrivals, scorer)
    return memory


def first_fact() -> Fact:
    """A fact of the key that all streams are about."""
    return next(Stream("", "", (Step("x", "ann"),), None).arrivals(typed=False)).fact
