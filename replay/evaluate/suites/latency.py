"""`retraction-latency`: the closure query over the reverse links against replay of the history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter_ns
from typing import TypeVar, final

from processor.engine.conversation import Conversation
from processor.engine.retraction import affected_closure
from replay.evaluate.adapters import moment
from replay.evaluate.benchmark import Benchmark, Item, Scores, Workload
from replay.evaluate.folding import fold_one
from schemas.operations import Hypothesize, Observe
from schemas.utterance import Utterance

CLOSURE, REPLAY = "closure", "flat_replay"
TURNS = (13, 100, 500, 2_000, 10_000, 100_000)
BRANCH = 12
"""Every twelfth turn observes afresh, the turns between rest on the one before: what a withdrawal
brings down does not grow with the conversation."""
REPEATS, REPEATS_LONG = 25, 5
_LONG_NS = 20_000_000

Links = list[tuple[str, tuple[str, ...]]]
ResultT = TypeVar("ResultT")


@final
class Latency(Workload):
    """Conversations of growing length; in each the first observation of the middle is withdrawn."""

    def __init__(self) -> None:
        self.items = tuple(Item(f"{turns} turns", str(turns), turns) for turns in TURNS)
        self._conversation = Conversation.empty("default", "latency")
        self._history: Links = []

    def measure(self, item: Item, arm: str) -> Scores:
        """The median time of one query in microseconds, and whether both answers are equal."""
        self._grow(item.content)
        withdrawn = f"r{item.content // 2 // BRANCH * BRANCH}"
        record = self._conversation.state.records[withdrawn]
        replayed, replay_ns = _timed(lambda: _replay(self._history, withdrawn))
        found, closure_ns = _timed(lambda: affected_closure(record))
        return {
            "microseconds": (closure_ns if arm == CLOSURE else replay_ns) / 1_000,
            "affected": float(len(found)),
            "answers_equal": float([each.id for each in found] == replayed),
        }

    def notes(self, scored: Mapping[tuple[str, str], Scores]) -> list[str]:
        """How many times longer the replay takes."""
        told = []
        for item in self.items:
            fast, slow = scored.get((item.id, CLOSURE)), scored.get((item.id, REPLAY))
            if fast and slow:
                ratio = slow["microseconds"] / fast["microseconds"]
                told.append(f"{item.id}: the replay takes {ratio:,.1f} times as long")
        return [*told, "times are of this machine: they are the one figure that differs by run"]

    def _grow(self, turns: int) -> None:
        """Go on with the conversation up to so many turns; a shorter one is begun anew."""
        if self._conversation.turn > turns:
            self._conversation = Conversation.empty("default", "latency")
            self._history = []
        for place in range(self._conversation.turn, turns):
            premises = (f"r{place - 1}",) if place % BRANCH else ()
            fold_one(self._conversation, _utterance(place, premises))
            self._history.append((f"r{place}", premises))


def _utterance(place: int, premises: tuple[str, ...]) -> Utterance:
    record, claim = f"r{place}", f"claim {place}"
    operation: Observe | Hypothesize = Observe(op="observe", record=record, claim=claim)
    if premises:
        operation = Hypothesize(op="hypothesize", record=record, claim=claim, premises=premises)
    return Utterance(
        conversation_id="latency",
        utterance_id=f"u{place}",
        speaker="ann",
        text=claim,
        at=moment(place),
        operations=(operation,),
    )


def _replay(history: Sequence[tuple[str, tuple[str, ...]]], withdrawn: str) -> list[str]:
    """What rests on a record, by going through the whole history once."""
    affected = {withdrawn: None}
    for record, premises in history:
        if any(premise in affected for premise in premises):
            affected[record] = None
    return list(affected)[1:]


def _timed(query: Callable[[], ResultT]) -> tuple[ResultT, float]:
    """The answer of a query, and the median of some tries in nanoseconds."""
    started = perf_counter_ns()
    answer = query()
    once = perf_counter_ns() - started
    tries = []
    for _ in range(REPEATS_LONG if once > _LONG_NS else REPEATS):
        started = perf_counter_ns()
        query()
        tries.append(perf_counter_ns() - started)
    return answer, float(median(tries))


LATENCY = Benchmark(
    "retraction-latency",
    "One retraction query: over the reverse links, and by replay of the flat history.",
    lambda options: Latency(),
    (CLOSURE, REPLAY),
    "0.25-0.46 us against 1.1-190 us for 13-2000 turns: 4 times at 13, 415 times at 2000 "
    "(Grounded Continuation, section 4.5).",
    axis="turns",
)
