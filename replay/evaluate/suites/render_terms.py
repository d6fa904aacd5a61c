"""`pairs` and `render-terms`: what a class can know, and what a better layout alone is worth.

In `render-terms` without a model each class is read by its own deterministic reader, so the terms
are what they must be: a reader that always finds the newest value in the ledger's layout makes the
whole gain of a reverted revert a matter of render. With a model the same renders are read by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from processor.evidence.answers import Found, Query
from processor.evidence.memories import BLIND_CLASSES
from processor.evidence.readers import ask
from processor.evidence.renders import render
from replay.evaluate.abstentions import abstentions
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
)
from replay.evaluate.suites.streams import (
    ATTRIBUTE,
    ENTITY,
    STRATA,
    Stream,
    first_fact,
    memory_of_stream,
    pairs,
    streams,
)
from replay.evaluate.tokens import tokens
from schemas.evidence import MemoryClass, RenderFormat

PAIRS, EACH = 120, 40
BUDGET_TOKENS = 4_000
TERMS = (
    MemoryClass.GRAPHRAG_ABSTAIN.value,
    MemoryClass.RENDER_MATCHED.value,
    MemoryClass.COARSE_RETAIN.value,
    MemoryClass.LEDGER.value,
)
KEY = first_fact().key


@final
class Snapshots(Workload):
    """One item per stream: which value is in force?"""

    def __init__(self, found: Sequence[Stream]) -> None:
        self.items = tuple(Item(each.id, each.stratum, each) for each in found)

    def measure(self, item: Item, arm: str) -> Scores:
        """Whether the class answers the gold value, or abstains where nobody can know."""
        stream: Stream = item.content
        memory = memory_of_stream(MemoryClass(arm), tuple(stream.arrivals(typed=True)))
        answer = ask(memory, Query(KEY))
        return _scores(stream, answer.found is Found.ABSTAIN, answer.value or "")

    def question(self, item: Item, arm: str) -> Question:
        """The render of the class, in the layout that all of them share."""
        stream: Stream = item.content
        memory = memory_of_stream(MemoryClass(arm), tuple(stream.arrivals(typed=True)))
        context = render(memory, RenderFormat.VERBOSE, tokens, BUDGET_TOKENS, [KEY], closed=True)
        return Question(context, f"Which {ATTRIBUTE} of the {ENTITY} is in force?")

    def grade(self, item: Item, answer: str) -> Scores:
        """The same for what a model says."""
        return _scores(item.content, is_abstention(answer), answer)

    def notes(self, scored: Mapping[tuple[str, str], Scores]) -> list[str]:
        """How well abstentions agree with those that should be, beyond chance."""
        return [
            f"{arm}: {of_arm.ours} abstentions, {of_arm.both} of {of_arm.gold} that should be; "
            f"kappa {of_arm.kappa:.3f}"
            for arm, of_arm in abstentions(scored).items()
        ]


def _scores(stream: Stream, abstained: bool, answer: str) -> Scores:
    wanted = stream.gold
    right = abstained if wanted is None else not abstained and matches(answer, wanted)
    return {
        "exact": float(right),
        "abstained": float(abstained),
        "should_abstain": float(wanted is None),
    }


def _pairs(options: Options) -> Workload:
    return Snapshots(pairs(PAIRS))


def _terms(options: Options) -> Workload:
    found = streams(options.seed, EACH)
    return Snapshots(sorted(found, key=lambda each: STRATA.index(each.stratum)))


_BLIND = ", ".join(each.value for each in BLIND_CLASSES)
REVERT_PAIRS = Benchmark(
    "pairs",
    "Pairs of streams that differ in their explicit relations alone: the ceiling of one half.",
    _pairs,
    CLASSES,
    f"a store that keeps no trace of what replaced what ({_BLIND}) cannot pass one half; one that "
    "does is right on all (Render Confound, proposition 1).",
)
RENDER_TERMS = Benchmark(
    "render-terms",
    "What is presentation and what is mechanism, on streams of our own in five strata.",
    _terms,
    TERMS,
    "on reverted reverts +0.159 render, +0.025 fine mechanism, +0.087 coarse mechanism with model "
    "readers on ESR-Bench, which is not published (Render Confound, table 2).",
    model_arms=TERMS,
    contrasts=(
        Contrast("render", "exact", TERMS[1], TERMS[0]),
        Contrast("fine mechanism", "exact", TERMS[3], TERMS[1]),
        Contrast("coarse mechanism", "exact", TERMS[2], TERMS[1]),
    ),
)
