"""`tiers`: where the conflict of a stream lives, told from its structure alone (appendix H).

All that learns has learned from streams of our own. It is measured on others of our own, with
another vocabulary, and on the slots of DyKnow, whose tier the dates tell: a value that returns, or
none. There the facts come in the stored order, from one source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import final

from processor.evidence.memories import Memory
from processor.evidence.tiers import Tier
from processor.render.memory import memory_of
from replay.evaluate.adapters.dated import golds, slot_utterances
from replay.evaluate.adapters.dyknow import read_slots
from replay.evaluate.benchmark import Benchmark, Item, Options, Scores, Workload
from replay.evaluate.folding import fold_native
from replay.evaluate.tier_classifier import ARMS, f1_by_tier, macro_f1, own_streams, tellers
from replay.evaluate.tier_streams import TierStream, text_of
from schemas.evidence import MemoryClass

OWN, DYKNOW = "our own streams", "dyknow"


@final
class Tiers(Workload):
    """One item per stream."""

    def __init__(self, options: Options) -> None:
        learned_on, measured_on = own_streams(options.seed)
        self._tellers = tellers(learned_on)
        of_dyknow = [] if options.data is None else list(_dyknow_streams(options.data))
        self.items = (
            *(Item(each.id, OWN, each) for each in measured_on),
            *(Item(each.id, DYKNOW, each) for each in of_dyknow),
        )

    def measure(self, item: Item, arm: str) -> Scores:
        """Whether the tier is told."""
        return {"right": float(self._tellers[arm](item.content) is item.content.tier)}

    def notes(self, scored: Mapping[tuple[str, str], Scores]) -> list[str]:
        """Macro-F1 of each arm, over the tiers that the streams have."""
        told: list[str] = []
        for group in dict.fromkeys(item.group for item in self.items):
            for arm in dict.fromkeys(arm for _, arm in scored):
                streams: list[TierStream] = [
                    item.content
                    for item in self.items
                    if item.group == group and (item.id, arm) in scored
                ]
                if streams:
                    gold = [stream.tier for stream in streams]
                    answers = [self._tellers[arm](stream) for stream in streams]
                    each = f1_by_tier(gold, answers)
                    parts = ", ".join(f"{tier.value} {figure:.3f}" for tier, figure in each.items())
                    figure = macro_f1(gold, answers)
                    told.append(f"{group}, {arm}: macro-F1 {figure:.3f} ({parts})")
        return told


def _dyknow_streams(path: Path) -> Iterator[TierStream]:
    """The keys of DyKnow whose dates order their values. Raises AdapterError."""
    for slot in read_slots(path, facets=True).slots:
        memory: Memory = memory_of(fold_native(slot_utterances(slot)), MemoryClass.GRAPHRAG_LITE)
        for gold in golds(slot):
            if gold.several or gold.tied or gold.before_tied:
                continue
            tier = Tier.REVERTED_REVERT if gold.returns else Tier.MONOTONIC
            for facts in map(memory.facts, memory.keys()):
                if facts[0].facet == gold.facet:
                    name = f"{slot.id} {facts[0].key.facet}".strip()
                    yield TierStream(name, tier, facts, text_of(facts))


TIER_CLASSIFIERS = Benchmark(
    "tiers",
    "Where the conflict of a stream lives: by rules, by what was learned, or the most frequent.",
    Tiers,
    ARMS,
    "macro-F1 0.794 structural, 0.399 TF-IDF, 0.179 majority on ESR-MultiRepo, which is not "
    "published, with features of the benchmark among those of the structure (Render Confound, "
    "table 21).",
    takes_data="DyKnow's qa_generated.json, to be measured on as well.",
)
