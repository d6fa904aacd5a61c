"""The same questions by graph traversal and by replaying the flat history, and how long each takes.

The flat history is what a transcript offers: who rests on whom, in the order it was said, and who
was withdrawn. It is gone through until nothing more falls. Both ways must agree on every answer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple, final

from processor.engine.conversation import Conversation
from processor.engine.record import Record
from processor.engine.retraction import affected_closure
from processor.engine.verify import is_grounded
from replay.errors import StoreError

SIZES = (13, 50, 200, 800, 2_000, 10_000, 100_000)
_QUERIES = 100
_QUERIES_LONG = 10
_LONG_TURNS = 10_000
_ROUNDS = 3
_GRAPH_REPEATS = 100
_MICROSECONDS = 1e6

History = Sequence[tuple[str, str]]
"""(record, support) pairs in the order they were said."""


@final
class Measured(NamedTuple):
    """What was found at one size; times are medians over the queries, in microseconds.

    `affected` is the median size of an answer, `disagreements` counts questions with two answers.
    """

    turns: int
    records: int
    queries: int
    affected: float
    graph_us: float
    flat_us: float
    verdict_graph_us: float
    verdict_flat_us: float
    disagreements: int

    @property
    def ratio(self) -> float:
        """How many times as long the flat history takes for what a withdrawal affects."""
        return self.flat_us / self.graph_us


def flat_history(conversation: Conversation) -> History:
    """What a flat history offers."""
    return [
        (record.id, support.id)
        for record in conversation.state.records.values()
        for support in record.supports
    ]


def flat_affected(history: History, withdrawn: str) -> set[str]:
    """Affected* by going through the history until nothing more falls."""
    fallen: set[str] = set()
    grown = True
    while grown:
        grown = False
        for record, support in history:
            if record not in fallen and (support == withdrawn or support in fallen):
                fallen.add(record)
                grown = True
    return fallen


def flat_is_grounded(history: History, fallen: frozenset[str], record: str) -> bool:
    """Whether a record rests on nothing that fell, by going backwards through the history."""
    below = {record}
    grown = True
    while grown:
        grown = False
        for dependent, support in reversed(history):
            if dependent in below and support not in below:
                below.add(support)
                grown = True
    return below.isdisjoint(fallen)


def compare(conversations: Iterable[Conversation]) -> Iterator[Measured]:
    """Ask both ways in each conversation, as it is when it is its turn."""
    for conversation in conversations:
        yield _measure(conversation)


def _measure(conversation: Conversation) -> Measured:
    records = list(conversation.state.records.values())
    history = flat_history(conversation)
    fallen = frozenset(record.id for record in records if not record.stands)
    most = _QUERIES if conversation.turn < _LONG_TURNS else _QUERIES_LONG
    chosen = Random(1).sample(records, min(most, len(records)))
    asked = [_ask(record, history, fallen) for record in chosen]
    affected, *times = (statistics.median(each[place] for each in asked) for place in range(5))
    graph_us, flat_us, verdict_graph_us, verdict_flat_us = times
    return Measured(
        conversation.turn,
        len(records),
        len(asked),
        affected,
        graph_us,
        flat_us,
        verdict_graph_us,
        verdict_flat_us,
        disagreements=sum(not each.agree for each in asked),
    )


@final
class _Asked(NamedTuple):
    affected: int
    graph_us: float
    flat_us: float
    verdict_graph_us: float
    verdict_flat_us: float
    agree: bool


def _ask(record: Record, history: History, fallen: frozenset[str]) -> _Asked:
    answer = {each.id for each in affected_closure(record)}
    agree = answer == flat_affected(history, record.id)
    agree = agree and is_grounded(record) == flat_is_grounded(history, fallen, record.id)
    return _Asked(
        len(answer),
        microseconds(lambda: affected_closure(record), _GRAPH_REPEATS),
        microseconds(lambda: flat_affected(history, record.id)),
        microseconds(lambda: is_grounded(record), _GRAPH_REPEATS),
        microseconds(lambda: flat_is_grounded(history, fallen, record.id)),
        agree,
    )


def microseconds(call: Callable[[], object], repeats: int = 1) -> float:
    """The best mean time of one call over a few rounds of `repeats` calls."""
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        best = min(best, (time.perf_counter() - start) / repeats)
    return best * _MICROSECONDS


def table(measured: Iterable[Measured]) -> Iterator[str]:
    """The figures as lines, the first their names."""
    yield (
        f"{'turns':>8} {'records':>8} {'affected':>9} {'graph us':>10} {'flat us':>12} "
        f"{'ratio':>9} {'verdict us':>11} {'flat us':>12}"
    )
    for each in measured:
        yield (
            f"{each.turns:>8,} {each.records:>8,} {each.affected:>9.0f} {each.graph_us:>10.2f} "
            f"{each.flat_us:>12,.1f} {each.ratio:>8,.0f}x {each.verdict_graph_us:>11.3f} "
            f"{each.verdict_flat_us:>12,.1f}"
        )


def plot(measured: Sequence[Measured], folder: Path) -> list[Path]:
    """Both latencies over the turns, as compare.svg and compare.png in a folder.

    Raises StoreError if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise StoreError("a plot needs matplotlib: install standfast[evaluate]") from missing
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    turns = [each.turns for each in measured]
    axes.plot(turns, [each.flat_us for each in measured], "o-", label="replay of the flat history")
    axes.plot(turns, [each.graph_us for each in measured], "s-", label="graph traversal")
    axes.set(xscale="log", yscale="log", xlabel="turns", ylabel="microseconds per question")
    axes.set_title("What rests on a record: median latency")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "compare.svg", folder / "compare.png"]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths
