"""The core's figures, as ratios in one run: `python -m tests.benchmarks.core`.

Retraction by the reverse index against a replay of the flat history, the time of a verdict, folding
against merely decoding the same JSON, and memory per record.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from random import Random

import orjson

from processor.engine.conversation import Conversation
from processor.engine.record import Record
from processor.engine.retraction import affected_closure
from processor.engine.verify import grade
from processor.evidence.fold import advance, fold
from schemas.log import LogEvent, OperationsAppended
from schemas.wire import canonical_bytes, decode_log_event
from tests.benchmarks.conversations import log_of

SIZES = (13, 50, 200, 800, 2_000, 10_000, 100_000)
QUERIES = 200


def flat_history(conversation: Conversation) -> list[tuple[str, str]]:
    """What a flat history offers: (record, support) pairs in the order they were said."""
    return [
        (record.id, support.id)
        for record in conversation.state.records.values()
        for support in record.supports
    ]


def replay_affected(history: Sequence[tuple[str, str]], withdrawn: str) -> set[str]:
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


def microseconds(call: Callable[[], object], repeats: int) -> float:
    """The best mean time of one call over five rounds of `repeats` calls."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        best = min(best, (time.perf_counter() - start) / repeats)
    return best * 1e6


def retraction(sizes: Sequence[int]) -> None:
    """Closure query and verdict at growing sizes; both ways of answering must agree."""
    print("retraction: reverse index against flat-history replay (medians over the queries)")
    print(
        f"{'turns':>8} {'records':>8} {'affected':>9} {'index us':>9} {'replay us':>11} "
        f"{'ratio':>9} {'verdict us':>11} {'0.25+0.15n us':>14}"
    )
    for turns in sizes:
        _, conversation = log_of(turns)
        records = list(conversation.state.records.values())
        history = flat_history(conversation)
        chosen = Random(1).sample(records, min(QUERIES if turns < 10_000 else 20, len(records)))
        rows = [_compare(record, history, turns) for record in chosen]
        sizes_, index, replay = (statistics.median(column) for column in zip(*rows, strict=True))
        mean_size = statistics.mean(row[0] for row in rows)
        mean_index = statistics.mean(row[1] for row in rows)
        verdict = statistics.median(
            microseconds(lambda record=record: grade(record), 200) for record in chosen
        )
        print(
            f"{turns:>8,} {len(records):>8,} {sizes_:>9.0f} {index:>9.2f} {replay:>11.1f} "
            f"{replay / index:>8.0f}x {verdict:>11.3f} "
            f"{mean_index:>6.2f}/{0.25 + 0.15 * mean_size:.2f}"
        )


def _compare(
    record: Record, history: Sequence[tuple[str, str]], turns: int
) -> tuple[int, float, float]:
    answer = {each.id for each in affected_closure(record)}
    assert answer == replay_affected(history, record.id), record
    index = microseconds(lambda: affected_closure(record), 200)
    replay = microseconds(lambda: replay_affected(history, record.id), max(1, 400 // max(turns, 1)))
    return len(answer), index, replay


def folding(turns: int) -> None:
    """Folding against decoding the same bytes; the collector is off in all of it."""
    events, _ = log_of(turns)
    stored = [canonical_bytes(event) for event in events]
    operations = sum(
        len(event.operations) for event in events if isinstance(event, OperationsAppended)
    )
    gc.collect()
    gc.disable()
    loads = _seconds(lambda: [orjson.loads(each) for each in stored])
    decode = _seconds(lambda: [decode_log_event(each) for each in stored])
    folded = _seconds(lambda: _advance_all(events))
    derived = _seconds(lambda: _fold_all(events))
    gc.enable()
    print(
        f"\nfolding {turns:,} turns, {operations:,} operations, "
        f"{sum(map(len, stored)) // operations} bytes per operation"
    )
    for name, seconds in (
        ("orjson.loads", loads),
        ("decode and validate", decode),
        ("fold", folded),
        ("fold and derive events", derived),
    ):
        print(f"{name:>24} {operations / seconds:>12,.0f} operations/s {seconds / loads:>7.1f}x")


def _seconds(call: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def _advance_all(events: Sequence[LogEvent]) -> str:
    conversation = Conversation.empty("default", "bench")
    for event in events:
        advance(conversation, event)
    return conversation.state_digest()


def _fold_all(events: Sequence[LogEvent]) -> None:
    conversation = Conversation.empty("default", "bench")
    for event in events:
        fold(conversation, event)


def memory(turns: int) -> None:
    """Bytes that a folded conversation holds, per record, claims and ids included."""
    stored = [canonical_bytes(event) for event in log_of(turns)[0]]
    gc.collect()
    tracemalloc.start()
    conversation = Conversation.empty("default", "bench")
    for each in stored:
        advance(conversation, decode_log_event(each))
    conversation.state_digest()
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    records = len(conversation.state.records)
    print(f"\nmemory: {held / records:,.0f} bytes per record over {records:,} records")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="only up to 2,000 turns")
    quick = parser.parse_args().quick
    retraction([size for size in SIZES if not quick or size <= 2_000])
    folding(2_000 if quick else 20_000)
    memory(2_000 if quick else 20_000)


if __name__ == "__main__":
    main()
