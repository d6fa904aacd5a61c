"""The ledger's figures: `python -m tests.benchmarks.evidence`.

Atoms folded per second of the processor, bytes kept of a key by each memory class, also of one that
changes often, and how long a question takes at growing numbers of keys.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Iterator
from itertools import islice
from random import Random

from processor.cli.main import GC_THRESHOLDS
from processor.evidence.answers import Query
from processor.evidence.fact import Arrival, Told, fact_of
from processor.evidence.key import key_of
from processor.evidence.memories import AWARE_CLASSES, TEXT_CLASSES, Memory
from processor.evidence.readers import ask
from schemas.evidence import Atom, MemoryClass, QueryClass

KEYS = (1_000, 100_000, 1_000_000)
ATOMS_PER_KEY = 1.5
ASKED = 2_000
BATCH = 10_000
CHANGES = (1, 10, 100, 1_000)


def stream(keys: int, seed: int = 1) -> Iterator[Arrival]:
    """Atoms about so many keys: each once in order, then updates of keys at random."""
    random = Random(seed)
    for place in range(int(keys * ATOMS_PER_KEY)):
        number = place if place < keys else random.randrange(keys)
        atom = Atom(entity=f"service {number}", attribute="timeout", value=f"{place} ms")
        told = Told(f"r{place}", "ann", "user", place + 1, place + 1)
        yield Arrival(fact_of(atom, told, place))


def changing(changes: int) -> Iterator[Arrival]:
    """One key whose value is replaced so often by its source."""
    for place in range(changes + 1):
        atom = Atom(entity="service", attribute="timeout", value=f"{place} ms")
        yield Arrival(fact_of(atom, Told(f"r{place}", "ann", "user", place + 1, place + 1), place))


def folded(memory_class: MemoryClass, arrivals: Iterator[Arrival]) -> tuple[Memory, float]:
    """A memory after these atoms, and how many a second; making them is not counted.

    The second is one of the processor, so that what else the machine does counts for little.
    """
    memory = Memory(memory_class)
    seconds, count = 0.0, 0
    while batch := list(islice(arrivals, BATCH)):
        start = time.process_time()
        memory.take_all(batch)
        seconds += time.process_time() - start
        count += len(batch)
    return memory, count / seconds


def ask_microseconds(memory: Memory, keys: int) -> float:
    """The median time of a question about a key at random, snapshot and provenance in turn."""
    random = Random(2)
    times = []
    for turn in range(ASKED):
        key = key_of(f"service {random.randrange(keys)}", "timeout")
        query = Query(key, (QueryClass.SNAPSHOT, QueryClass.PROVENANCE)[turn % 2])
        start = time.perf_counter()
        ask(memory, query)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def main() -> None:
    """Print the tables."""
    gc.set_threshold(*GC_THRESHOLDS)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, nargs="*", default=KEYS)
    for keys in parser.parse_args().keys:
        memory, per_second = folded(MemoryClass.LEDGER, stream(keys))
        microseconds = ask_microseconds(memory, keys)
        print(
            f"{keys:>9,} keys: {per_second:>9,.0f} atoms folded/s, ask {microseconds:.1f} us",
            flush=True,
        )
        del memory
    for memory_class in MemoryClass:
        memory, _ = folded(memory_class, stream(KEYS[0]))
        if memory_class not in TEXT_CLASSES:
            print(f"{memory_class:>18}: {memory.bytes_per_key():>7,.0f} bytes per key")
            continue
        size = sum(len(passage.text.encode()) for passage in memory.passages) / KEYS[0]
        print(f"{memory_class:>18}: {size:>7,.0f} bytes per key")
    for memory_class in AWARE_CLASSES:
        sizes = [folded(memory_class, changing(n))[0].bytes_per_key() for n in CHANGES]
        told = ", ".join(f"{size:,.0f} after {n:,}" for n, size in zip(CHANGES, sizes, strict=True))
        print(f"{memory_class:>18}: bytes of a key {told} changes")


if __name__ == "__main__":
    main()
