"""`templama` and `dyknow`: what each memory class answers about dated values, by exact match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple, final

from processor.engine.conversation import Conversation
from processor.evidence.answers import Answer, Found, Query
from processor.evidence.key import Key, key_of
from processor.evidence.memories import Memory
from processor.evidence.readers import ask
from processor.evidence.renders import render
from processor.evidence.timeline import periods
from processor.render.memory import memory_of
from replay.evaluate.abstentions import abstentions
from replay.evaluate.adapters.dated import Gold, Slot, golds, in_order, slot_utterances
from replay.evaluate.adapters.dyknow import read_slots
from replay.evaluate.adapters.templama import slots
from replay.evaluate.asking import is_abstention, matches
from replay.evaluate.benchmark import (
    CLASSES,
    Benchmark,
    Contrast,
    Item,
    Options,
    Question,
    Scores,
    Workload,
    given_data,
)
from replay.evaluate.folding import fold_native
from replay.evaluate.tokens import tokens
from schemas.evidence import MemoryClass, QueryClass, RenderFormat

BUDGET_TOKENS = 4_000
SNAPSHOT, RETURNED = "snapshot", "snapshot, a value returned"
SEVERAL, PROVENANCE = "snapshot, several at once", "provenance"


@final
class _Asked(NamedTuple):
    """One query about one key."""

    slot: Slot
    gold: Gold
    query_class: QueryClass

    def wanted(self) -> str | None:
        """The gold value; None for abstain."""
        is_snapshot = self.query_class is QueryClass.SNAPSHOT
        return self.gold.in_force if is_snapshot else self.gold.before


@final
class Dated(Workload):
    """One item per key and query; a key whose dates do not order its values is only counted."""

    def __init__(self, found: Sequence[Slot], how_read: Iterable[str], compare: bool) -> None:
        self._how_read = list(how_read)
        self._compare = compare
        self._conversations = {slot.id: fold_native(slot_utterances(slot)) for slot in found}
        self._memory = cache(self._folded)
        golds_of = [(slot, gold) for slot in found for gold in golds(slot)]
        self._tied = sum(gold.tied for _, gold in golds_of)
        self._before_tied = sum(
            gold.before_tied and gold.before is not None for _, gold in golds_of
        )
        self._keys = len(golds_of)
        self.items = tuple(item for slot, gold in golds_of for item in _items(slot, gold))
        self._orders = [
            _same_history(slot) for slot in found if compare and not _is_undecided(slot)
        ]

    def measure(self, item: Item, arm: str) -> Scores:
        """Exact match with the gold value, or with the gold abstention."""
        asked: _Asked = item.content
        memory = self._memory(asked.slot.id, arm)
        answer = ask(memory, Query(_key(asked), asked.query_class))
        return {"exact": float(_is_right(answer, asked.wanted()))} | _abstains(
            answer.found is Found.ABSTAIN, asked
        )

    def question(self, item: Item, arm: str) -> Question:
        """The render of the class, and the query in words."""
        asked: _Asked = item.content
        memory = self._memory(asked.slot.id, arm)
        retains = asked.query_class is QueryClass.PROVENANCE
        context = render(
            memory, RenderFormat.VERBOSE, tokens, BUDGET_TOKENS, [_key(asked)], closed=retains
        )
        entity, attribute = asked.slot.entity, asked.slot.attribute
        which = "was in force just before the present one" if retains else "is in force"
        return Question(context, f"Which value of {attribute} of {entity} {which}?")

    def grade(self, item: Item, answer: str) -> Scores:
        """Exact match, or an abstention where the gold is one."""
        asked: _Asked = item.content
        wanted, abstains = asked.wanted(), is_abstention(answer)
        right = abstains if wanted is None else matches(answer, wanted)
        return {"exact": float(right)} | _abstains(abstains, asked)

    def notes(self, scored: Mapping[tuple[str, str], Scores]) -> list[str]:
        """How the data was read, and how well the arms' abstentions agree with the gold ones."""
        told = [
            *self._how_read,
            f"of {self._keys} keys {self._tied} have another value that begins together with the "
            f"one in force, {self._before_tied} with that or the one before: the dates do not "
            "order them, so they are not asked for",
        ]
        if self._compare:
            told.append(
                f"{sum(self._orders)} of {len(self._orders)} slots whose spells all begin "
                "apart have the same history and windows in the stored order as in that of time"
            )
        for arm, of_arm in abstentions(scored).items():
            if of_arm.ours or of_arm.gold:
                told.append(
                    f"{arm}: abstains on {of_arm.ours} of {of_arm.asked} snapshots where "
                    f"{of_arm.gold} should be, {of_arm.both} of them rightly; "
                    f"kappa {of_arm.kappa:.3f}"
                )
        return told

    def _folded(self, slot: str, arm: str) -> Memory:
        return memory_of(self._conversations[slot], MemoryClass(arm))


def _items(slot: Slot, gold: Gold) -> Iterable[Item]:
    facet = f" [{gold.facet}]" if gold.facet else ""
    group = SEVERAL if gold.several else RETURNED if gold.returns else SNAPSHOT
    asked = _Asked(slot, gold, QueryClass.SNAPSHOT)
    if not gold.tied:
        yield Item(f"{slot.id}{facet} snapshot", group, asked)
    if gold.before is not None and not gold.before_tied:
        asked = asked._replace(query_class=QueryClass.PROVENANCE)
        yield Item(f"{slot.id}{facet} provenance", PROVENANCE, asked)


def _abstains(abstained: bool, asked: _Asked) -> Scores:
    if asked.query_class is not QueryClass.SNAPSHOT:
        return {}
    return {"abstained": float(abstained), "should_abstain": float(asked.wanted() is None)}


def _key(asked: _Asked) -> Key:
    return key_of(asked.slot.entity, asked.slot.attribute, asked.gold.facet)


def _is_right(answer: Answer, wanted: str | None) -> bool:
    if wanted is None:
        return answer.found is Found.ABSTAIN
    return answer.value is not None and matches(answer.value, wanted)


def _same_history(slot: Slot) -> bool:
    """Whether the stored order and the order of time leave the same history and windows."""
    stored, ordered = (fold_native(slot_utterances(each)) for each in (slot, in_order(slot)))
    return _history(stored) == _history(ordered)


def _is_undecided(slot: Slot) -> bool:
    """Whether two spells of a key begin together, so that no order of time is given."""
    begun = [(spell.facet, spell.begins()) for spell in slot.spells]
    return len(dict.fromkeys(begun)) < len(begun)


def _history(conversation: Conversation) -> dict[object, object]:
    rows = memory_of(conversation, MemoryClass.LEDGER).rows
    return {
        key: sorted((p.valid_from or "", p.valid_to or "", p.value) for p in periods(row))
        for key, row in rows.items()
    }


def _counted(found: Sequence[Slot]) -> tuple[str, str]:
    of_all = [gold for slot in found for gold in golds(slot)]
    returns = sum(gold.returns for gold in of_all)
    several = sum(bool(gold.several) for gold in of_all)
    return (
        f"{len(found)} slots, {len(of_all)} keys, {sum(len(s.spells) for s in found)} values with "
        f"dates; in {returns} keys a value returns",
        f"in {several} keys several values go on at once: the answer is to abstain",
    )


def _templama(options: Options) -> Workload:
    found = slots(given_data(options))
    read = (
        "years are read as they are listed; a value that is among the last year's answers goes on"
    )
    return Dated(found, [*_counted(found), read], compare=False)


def _dyknow(options: Options) -> Workload:
    path = given_data(options)
    read, plain = read_slots(path, facets=True), read_slots(path, facets=False)
    several = sum(bool(gold.several) for slot in plain.slots for gold in golds(slot))
    how = (
        f"{read.values} values: {read.year_only} begin with a year alone, "
        f"{read.without_beginning} without a beginning begin with their end, {read.points} have a "
        "point in time that is passed over; an end lasts to the end of its year, month or day",
        f"without the facet for national teams {several} slots have several values at once",
    )
    return Dated(read.slots, [*_counted(read.slots), *how], compare=True)


_CONTRASTS = (
    Contrast("render", "exact", MemoryClass.RENDER_MATCHED.value, "graphrag_abstain"),
    Contrast("fine mechanism", "exact", MemoryClass.LEDGER.value, "render_matched"),
    Contrast("coarse mechanism", "exact", MemoryClass.COARSE_RETAIN.value, "render_matched"),
    Contrast("retention", "exact", MemoryClass.COARSE_RETAIN.value, "coarse_discard"),
)
TEMPLAMA = Benchmark(
    "templama",
    "TempLAMA: the value in force and the one before it, for every memory class.",
    _templama,
    CLASSES,
    "provenance with five model readers on 900 streams: discarding 0.061, blind 0.329, coarse "
    "retaining 0.576, ledger 0.902; snapshots of 237 reverted streams at 0.957 to 1.000 (Render "
    "Confound, appendix D).",
    "templama.jsonl.",
    CLASSES,
    _CONTRASTS,
)
DYKNOW = Benchmark(
    "dyknow",
    "DyKnow: the same, with values that arrive in no order.",
    _dyknow,
    CLASSES,
    "coarse invalidation beats a blind store; on 11 provenance queries the order of the classes is "
    "that of TempLAMA (Render Confound, section 4.3).",
    "qa_generated.json.",
    CLASSES,
    _CONTRASTS,
)
