"""Answers about the evidence ledger: one form for commands and over HTTP alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, final

from processor.engine.conversation import Conversation
from processor.evidence.answers import Answer, Found, Query
from processor.evidence.fact import Arrival
from processor.evidence.key import Key, key_of
from processor.evidence.ledger import Event
from processor.evidence.memories import AWARE_CLASSES, TEXT_CLASSES, Memory
from processor.evidence.projection import events_of, ledger_of, scorer_for
from processor.evidence.readers import ask
from processor.evidence.renders import render
from processor.evidence.retention import select_retention
from processor.evidence.row import Row
from processor.evidence.tiers import TellTier, Tier, structure_of, tier_of
from processor.render.tokens import estimate_tokens
from processor.render.view import View
from schemas.evidence import MemoryClass, QueryClass, RenderFormat

BUDGET_TOKENS = 4_000


class FacetNeededError(LookupError):
    """The attribute is only known by facet; `facets` are those it has."""

    def __init__(self, facets: tuple[str, ...]) -> None:
        super().__init__(f"name one of its facets: {', '.join(facets)}")
        self.facets = facets


@final
class Asked(NamedTuple):
    """What is asked of a conversation's memory, as it was written."""

    entity: str
    attribute: str
    facet: str | None = None
    query_class: QueryClass = QueryClass.SNAPSHOT
    turn: int | None = None
    at: str | None = None

    @property
    def key(self) -> Key:
        """The key that was named."""
        return key_of(self.entity, self.attribute, self.facet)


@final
class Remembered(NamedTuple):
    """What is asked about the memory of a conversation as of a turn.

    `memory` makes it, which may take long. For the classes that are aware of what replaced what it
    is made of rows, which are values: then it is the same whatever becomes of the conversation.
    """

    tenant_id: str
    conversation_id: str
    turn: int
    memory: Callable[[], Memory]


def remembered(
    conversation: Conversation,
    memory_class: MemoryClass = MemoryClass.LEDGER,
    about: Key | None = None,
) -> Remembered:
    """The memory of the conversation as it is now, in the time that copying a dict takes.

    With `about` it may lack the keys of other entities and attributes.
    """
    if memory_class in AWARE_CLASSES:
        rows = ledger_of(conversation).rows
        needed = dict(rows) if about is None or about not in rows else {about: rows[about]}
        memory = partial(_of_rows, needed, memory_class, about)
    else:
        memory = partial(_folded, conversation, memory_class, about)
    ids = conversation.tenant_id, conversation.conversation_id
    return Remembered(*ids, conversation.turn, memory)


def memory_of(conversation: Conversation, memory_class: MemoryClass) -> Memory:
    """A memory of this class after all that was said in the conversation."""
    return remembered(conversation, memory_class).memory()


def _of_rows(rows: dict[Key, Row], memory_class: MemoryClass, about: Key | None) -> Memory:
    if about is not None:
        rows = {key: row for key, row in rows.items() if key[:2] == about[:2]}
    return Memory.of_rows(memory_class, rows)


def _folded(conversation: Conversation, memory_class: MemoryClass, about: Key | None) -> Memory:
    """A memory of any class, from the events: no key depends on another but where it retrieves."""
    memory = Memory(memory_class)
    records = conversation.state.records
    wanted = None if about is None or memory_class in TEXT_CLASSES else about[:2]
    for event, source in events_of(conversation):
        if wanted is None or not isinstance(event, Arrival) or event.fact.key[:2] == wanted:
            memory.take(event, scorer_for(source), records[_record_of(event)].claim)
    return memory


def memory_answer(of: Remembered, asked: Asked) -> View:
    """What the memory answers. Raises FacetNeededError."""
    memory = of.memory()
    key = asked.key if asked.facet is not None else _with_facet(memory, asked.key)
    answer = ask(memory, Query(key, asked.query_class, asked.turn, asked.at))
    return {
        "tenant_id": of.tenant_id,
        "conversation_id": of.conversation_id,
        "turn": of.turn,
        "memory": memory.memory_class,
        "query": asked.query_class,
        "entity": asked.entity,
        "attribute": asked.attribute,
        "facet": asked.facet,
        **answer_values(answer),
    }


def answer_values(answer: Answer) -> View:
    """An answer as JSON values."""
    return {
        **answer._asdict(),
        "records": list(answer.records),
        "sides": [{"value": side.value, "records": list(side.records)} for side in answer.sides],
    }


def answer_line(answer: View) -> str:
    """An answer in one line."""
    match answer["found"]:
        case Found.VALUE:
            since = f", from {answer['valid_from']}" if answer["valid_from"] is not None else ""
            until = f" to {answer['valid_to']}" if answer["valid_to"] is not None else ""
            return f"{answer['value']}{_by(answer['records'])}{since}{until}"
        case Found.ABSTAIN:
            sides = answer["sides"]
            assert isinstance(sides, list)
            told = " against ".join(f"{s['value']}{_by(s['records'])}" for s in sides)
            return f"abstains: {told}"
        case Found.NOT_KEPT:
            return f"{answer['memory']} does not keep what {answer['query']} needs"
        case _:
            return "nothing"


def memory_render(
    of: Remembered,
    how: RenderFormat = RenderFormat.COMPACT,
    budget_tokens: int = BUDGET_TOKENS,
    superseded: bool = False,
) -> View:
    """The memory in words; what was superseded is left out unless it is asked for."""
    memory = of.memory()
    text = render(memory, how, estimate_tokens, budget_tokens, closed=superseded)
    return {
        "turn": of.turn,
        "memory": memory.memory_class,
        "format": how,
        "text": text,
        "tokens": estimate_tokens(text),
    }


def memory_advice(
    conversation: Conversation, query_mix: Mapping[QueryClass, float], tell: TellTier = tier_of
) -> View:
    """The least class for a mix of queries, its cost here, and the conflict tiers that were seen.

    `tell` says of which tier a key is. Raises ValueError for a mix in which nothing is asked.
    """
    chosen = select_retention(query_mix)
    events = [event for event, _ in events_of(conversation)]
    tiers = tier_mix(events, tell)
    kept = [memory_of(conversation, each) for each in AWARE_CLASSES]
    return {
        "memory": chosen,
        "query_mix": {each.value: query_mix[each] for each in QueryClass if each in query_mix},
        "bytes_per_key": {memory.memory_class.value: _bytes_per_key(memory) for memory in kept},
        "tiers": {tier.value: tiers[tier] for tier in Tier},
        "turn": conversation.turn,
    }


def tier_mix(events: list[Event], tell: TellTier = tier_of) -> dict[Tier, int]:
    """How many keys are of each conflict tier."""
    memory = Memory(MemoryClass.GRAPHRAG_LITE)
    memory.take_all(events)
    tiers = [tell(structure_of(facts)) for facts in map(memory.facts, memory.keys())]
    return {tier: tiers.count(tier) for tier in Tier}


def _with_facet(memory: Memory, key: Key) -> Key:
    """The key that is meant; the only facet if the attribute has no value without one."""
    if memory.memory_class in TEXT_CLASSES:
        return key
    keys = memory.keys()
    known = [each for each in keys if each[:2] == key[:2]]
    if not known or key in known:
        return key
    if len(known) > 1:
        raise FacetNeededError(tuple(each.facet for each in known))
    return known[0]


def _bytes_per_key(memory: Memory) -> int:
    return round(memory.bytes_per_key())


def _record_of(event: Event) -> str:
    return event.fact.record if isinstance(event, Arrival) else event.record


def _by(records: object) -> str:
    assert isinstance(records, list)
    return f" ({', '.join(records)})" if records else ""
