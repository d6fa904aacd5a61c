"""The core's figures, as ratios in one run: `python -m tests.benchmarks.core`.

Retraction by the reverse index against a replay of the flat history, the time of a verdict, folding
against merely decoding the same JSON, and memory per record.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections.abc import Callable, Sequence

import orjson

from processor.app.growing import growing
from processor.engine.conversation import Conversation
from processor.evidence.fold import advance, fold
from replay.compare import SIZES, compare, table
from schemas.log import LogEvent, OperationsAppended
from schemas.wire import canonical_bytes, decode_log_event
from tests.benchmarks.conversations import log_of


def retraction(sizes: Sequence[int]) -> None:
    """Closure query and verdict at growing sizes; both ways of answering must agree."""
    print("retraction: reverse index against flat-history replay (medians over the queries)")
    for line in table(compare(growing(sizes))):
        print(line)


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
