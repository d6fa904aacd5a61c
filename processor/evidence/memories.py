"""Memory classes: folds over the same log that differ in what they keep.

Classes that keep a row differ in how much of it (`Keep`) and in the scorer; the others keep facts
without asking how these stand to each other, or the words. `kept` says in canonical values what a
class keeps of a key, which is what its readers read and what its size is measured by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import NamedTuple, final

from processor.evidence.fact import Arrival, Fact
from processor.evidence.key import Key
from processor.evidence.ledger import Event, Ledger, Withdrawal
from processor.evidence.row import Keep, Row, as_kept
from processor.evidence.scorer import RULES, Scorer
from schemas.evidence import MemoryClass, Relation
from schemas.wire import canonical_bytes

_KEEPS = {
    MemoryClass.COARSE_DISCARD: Keep.LIVE,
    MemoryClass.COARSE_RETAIN: Keep.CLOSED,
    MemoryClass.LEDGER: Keep.RELATIONS,
    MemoryClass.RENDER_MATCHED: Keep.RELATIONS,
}
TEXT_CLASSES = (MemoryClass.DIRECT_CONTEXT, MemoryClass.RAG_TOP_K)
BLIND_CLASSES = (
    MemoryClass.LATEST_ONLY,
    MemoryClass.TIMESTAMP_RERANK,
    MemoryClass.METADATA_ONLY,
    MemoryClass.GRAPHRAG_LITE,
    MemoryClass.GRAPHRAG_ABSTAIN,
    MemoryClass.RENDER_MATCHED,
)
"""They keep no trace of what replaced what."""
AWARE_CLASSES = (MemoryClass.COARSE_DISCARD, MemoryClass.COARSE_RETAIN, MemoryClass.LEDGER)
"""They keep a trace of what replaced what."""


@final
class Passage(NamedTuple):
    """The words of one record, with the atoms they stand for."""

    record: str
    text: str
    facts: tuple[Fact, ...]


@final
class Memory:
    """One memory class while a log is folded into it.

    `rows` are the keys of a class that keeps rows, `passages` the words, each in the order they
    came; a class that keeps facts alone has them by key in `facts`.
    """

    __slots__ = ("_facts", "ledger", "memory_class", "passages")

    def __init__(self, memory_class: MemoryClass) -> None:
        self.memory_class = memory_class
        self.ledger = Ledger(_KEEPS.get(memory_class, Keep.LIVE))
        self._facts: dict[Key, dict[object, Fact]] = {}
        self.passages: list[Passage] = []

    @classmethod
    def of_rows(cls, memory_class: MemoryClass, rows: Mapping[Key, Row]) -> Memory:
        """The memory of an aware class, which is part of the ledger's, for the keys of these rows.

        It is for questions alone: what it is not told it cannot go on from.
        """
        assert memory_class in AWARE_CLASSES
        memory = cls(memory_class)
        keep = memory.ledger.keep
        memory.ledger.rows = {key: as_kept(row, keep) for key, row in rows.items()}
        return memory

    @property
    def rows(self) -> MutableMapping[Key, Row]:
        """The rows by key; empty for a class that keeps none."""
        return self.ledger.rows

    def keys(self) -> tuple[Key, ...]:
        """The keys in the order they came."""
        if self.memory_class in TEXT_CLASSES:
            facts = (fact for passage in self.passages for fact in passage.facts)
            return tuple(dict.fromkeys(fact.key for fact in facts))
        return tuple(self.rows if self.memory_class in _KEEPS else self._facts)

    def facts(self, key: Key) -> tuple[Fact, ...]:
        """The facts of a key that a class without rows keeps, in the order they came to stay."""
        return tuple(self._facts.get(key, {}).values())

    def take(self, event: Event, scorer: Scorer = RULES, text: str = "") -> None:
        """Fold one event; `text` are the words of the record it comes from."""
        if self.memory_class in _KEEPS:
            if self.memory_class is MemoryClass.RENDER_MATCHED:
                blind = as_same_state(event)
                if blind is not None:
                    self.ledger.take(blind, scorer)
            else:
                self.ledger.take(event, scorer)
        elif isinstance(event, Arrival):
            if self.memory_class in TEXT_CLASSES:
                self._read(event.fact, text)
            else:
                _keep_fact(
                    self.memory_class, self._facts.setdefault(event.fact.key, {}), event.fact
                )

    def take_all(self, events: Iterable[Event], scorer: Scorer = RULES) -> None:
        """Fold several events without their words."""
        for event in events:
            self.take(event, scorer)

    def kept(self, key: Key) -> list[object]:
        """What is kept of a key, as canonical values."""
        if self.memory_class in TEXT_CLASSES:
            return [p.text for p in self.passages if any(fact.key == key for fact in p.facts)]
        if self.memory_class not in _KEEPS:
            return [_fact_values(fact) for fact in self.facts(key)]
        row = self.rows[key]
        live = [[_fact_values(fact) for fact in holding.facts] for holding in row.live]
        conflicts = [list(conflict) for conflict in row.conflicts]
        match self.ledger.keep:
            case Keep.LIVE:
                return [live, conflicts]
            case Keep.CLOSED:
                closed = [[_fact_values(c.fact), c.turn, c.is_late] for c in row.closed]
                return [live, closed, conflicts]
            case Keep.RELATIONS:
                typed = [
                    [_fact_values(c.fact), c.turn, c.is_late, c.relation, c.by] for c in row.closed
                ]
                return [live, typed, conflicts]

    def bytes_per_key(self) -> float:
        """How many canonical bytes the class keeps of a key, on average."""
        keys = self.keys()
        return sum(len(canonical_bytes(self.kept(key))) for key in keys) / max(1, len(keys))

    def _read(self, fact: Fact, text: str) -> None:
        last = self.passages[-1] if self.passages else None
        if last is not None and last.record == fact.record:
            self.passages[-1] = last._replace(facts=(*last.facts, fact))
        else:
            words = text or f"{fact.entity}: {fact.attribute} is {fact.value}"
            self.passages.append(Passage(fact.record, words, (fact,)))


def as_same_state(event: Event) -> Arrival | None:
    """The event with its relation to everything forced to same_state; a withdrawal is none."""
    return None if isinstance(event, Withdrawal) else Arrival(event.fact, Relation.SAME_STATE)


def _keep_fact(memory_class: MemoryClass, kept: dict[object, Fact], new: Fact) -> None:
    """Add a fact to what a class without rows keeps of its key, in place of what it replaces."""
    match memory_class:
        case MemoryClass.LATEST_ONLY:
            kept[None] = new
        case MemoryClass.METADATA_ONLY:
            said = new.said, new.polarity
            same = kept.pop(said, new)
            kept[said] = same if new.is_older(same) else new
        case _:
            kept[new.place] = new


def _fact_values(fact: Fact) -> list[object]:
    return [
        fact.value,
        fact.polarity,
        fact.valid_from,
        fact.valid_to,
        fact.record,
        fact.source,
        fact.turn,
    ]
