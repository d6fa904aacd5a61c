"""`noise` and `path-recall`: where in the pipeline an answer is lost.

Noise is drawn for each atom, or each pair of atoms, from a hash of the seed and of the pair alone,
so both arms meet the same, and a higher level spoils all that a lower one does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import final

from processor.evidence.answers import Found, Query
from processor.evidence.fact import Arrival, Fact
from processor.evidence.memories import Memory
from processor.evidence.readers import ask
from processor.evidence.renders import render
from processor.evidence.scorer import RULES
from replay.evaluate.benchmark import (
    Benchmark,
    Contrast,
    Item,
    Options,
    Scores,
    Workload,
)
from replay.evaluate.suites.render_terms import BUDGET_TOKENS, KEY
from replay.evaluate.suites.streams import Step, Stream, memory_of_stream, streams
from replay.evaluate.tokens import tokens
from schemas.evidence import MemoryClass, QueryClass, Relation, RenderFormat

LEVELS = ("0", "0.1", "0.2", "0.3", "0.4", "0.5")
LABELS, ATOMS = "labels", "atoms"
_CLASSES = {"coarse": MemoryClass.COARSE_RETAIN, "ledger": MemoryClass.LEDGER}
EACH_NOISE, EACH_PATH = 89, 100
_JUDGED = (Relation.SAME_STATE, Relation.REFINES, Relation.SUPERSEDES, Relation.CONTRADICTS)

AS_IT_IS, PAIR, ROW, RENDER = "as_it_is", "pair_oracle", "row_oracle", "render_oracle"
STAGES = ("pair", "arbitration", "render", "decode")


def drawn(seed: int, *what: object) -> float:
    """A number in [0, 1) that depends on the seed and on what it is drawn for."""
    named = "\x1f".join(map(str, (seed, *what))).encode()
    return int.from_bytes(sha256(named).digest()[:8]) / 2**64


@final
@dataclass(frozen=True)
class NoisyScorer:
    """The rules, with another label at random for some pairs."""

    seed: int
    stream: str
    level: float

    def relation(self, new: Fact, old: Fact) -> Relation:
        """The rules' relation, or with the probability of the level any other."""
        told = RULES.relation(new, old)
        pair = (self.stream, old.place, new.place)
        if drawn(self.seed, "label", *pair) >= self.level:
            return told
        others = [each for each in _JUDGED if each is not told]
        return others[int(drawn(self.seed, "which", *pair) * len(others))]


@final
class Noise(Workload):
    """One item per stream and level; an arm is a class and what the noise falls on."""

    def __init__(self, options: Options) -> None:
        self._seed = options.seed
        self.items = tuple(
            Item(f"{each.id} {level}", level, each)
            for level in LEVELS
            for each in streams(options.seed, EACH_NOISE)
        )

    def measure(self, item: Item, arm: str) -> Scores:
        """The value in force and the one before it, after noise."""
        stream: Stream = item.content
        named, noise = arm.split("_")
        level = float(item.group)
        arrivals = tuple(stream.arrivals(typed=False))
        scorer = NoisyScorer(self._seed, stream.id, level if noise == LABELS else 0.0)
        if noise == ATOMS:
            arrivals = tuple(a for a in arrivals if self._stays(stream, a, level))
        memory = memory_of_stream(_CLASSES[named], arrivals, scorer)
        scores: Scores = {"snapshot": float(_answers(memory, QueryClass.SNAPSHOT, stream.gold))}
        if stream.before is not None:
            found = _answers(memory, QueryClass.PROVENANCE, stream.before)
            scores["provenance"] = float(found)
        return scores

    def _stays(self, stream: Stream, arrival: Arrival, level: float) -> bool:
        return drawn(self._seed, "atom", stream.id, arrival.fact.place) >= level


@final
class PathRecall(Workload):
    """One item per stream: the answer read from the render, with an oracle for a part of the path.

    `pair_oracle` is told the true relations, `row_oracle` starts from the true row,
    `render_oracle` from a render that says the truth.
    """

    def __init__(self, options: Options) -> None:
        found = streams(options.seed, EACH_PATH)
        self.items = tuple(Item(each.id, each.stratum, each) for each in found)

    def measure(self, item: Item, arm: str) -> Scores:
        """Whether what is read at the end is the gold answer."""
        stream: Stream = item.content
        if arm == RENDER:
            text = _true_render(stream.gold)
        else:
            known = _true_row(stream) if arm == ROW else stream
            arrivals = tuple(known.arrivals(typed=arm != AS_IT_IS))
            memory = memory_of_stream(MemoryClass.LEDGER, arrivals)
            text = render(memory, RenderFormat.VERBOSE, tokens, BUDGET_TOKENS, [KEY])
        return {"right": float(read_render(text) == stream.gold)}

    def notes(self, scored: Mapping[tuple[str, str], Scores]) -> list[str]:
        """The share of the answers that survives each stage, given the stages before it."""
        arms = (AS_IT_IS, PAIR, ROW, RENDER)
        told = []
        for stratum in dict.fromkeys(item.group for item in self.items):
            ids = [item.id for item in self.items if item.group == stratum]
            means = []
            for arm in arms:
                found = [scored[id_, arm]["right"] for id_ in ids if (id_, arm) in scored]
                means.append(sum(found) / len(found) if found else None)
            shares = [
                "?" if now is None or best is None else f"{now / best:.3f}" if best else "0.000"
                for now, best in zip(means, (*means[1:], 1.0), strict=True)
            ]
            listed = ", ".join(f"{a} {b}" for a, b in zip(STAGES, shares, strict=True))
            told.append(f"{stratum}: {listed}")
        return told


def read_render(text: str) -> str | None:
    """What a reader of the verbose render says; None for abstain."""
    if re.search(r"^  Status: unresolved$", text, re.MULTILINE):
        return None
    current = re.search(r"^  Current value: (.*)$", text, re.MULTILINE)
    return current[1] if current else None


def _true_render(gold: str | None) -> str:
    return "  Status: unresolved" if gold is None else f"  Current value: {gold}"


def _true_row(stream: Stream) -> Stream:
    """A stream that leaves the gold row whatever the arbitration does."""
    if stream.gold is not None:
        return stream._replace(steps=(Step(stream.gold, "ann"),))
    first, second = stream.steps[0], stream.steps[1]
    return stream._replace(steps=(first, second._replace(relation=Relation.CONTRADICTS)))


def _answers(memory: Memory, query_class: QueryClass, gold: str | None) -> bool:
    answer = ask(memory, Query(KEY, query_class))
    return answer.found is Found.ABSTAIN if gold is None else answer.value == gold


NOISE = Benchmark(
    "noise",
    "Wrong relation labels and lost atoms, the same in both arms.",
    Noise,
    tuple(f"{named}_{noise}" for noise in (LABELS, ATOMS) for named in _CLASSES),
    "fine less coarse with model readers, labels: -0.016, -0.099, -0.063, -0.097, -0.083, -0.034; "
    "atoms: -0.007, -0.034, -0.049, -0.040, -0.045, -0.043 at p = 0 to 0.5; no level favours the "
    "fine ledger (Render Confound, table 13).",
    contrasts=tuple(
        Contrast(f"fine less coarse, {noise}", measure, f"ledger_{noise}", f"coarse_{noise}")
        for noise in (LABELS, ATOMS)
        for measure in ("snapshot", "provenance")
    ),
    axis="p",
)
PATH_RECALL = Benchmark(
    "path-recall",
    "Where an answer is lost between the pair of atoms and the reader, by oracle substitution.",
    PathRecall,
    (AS_IT_IS, PAIR, ROW, RENDER),
    "the rule scorer's refinement recall is 0.050 and its share of missed supersessions 0.720 on "
    "500 labelled pairs, which are not published (Render Confound, table 4).",
)
