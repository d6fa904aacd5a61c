"""How much to keep: the least memory class that covers the queries that are asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, final

from processor.evidence.memories import AWARE_CLASSES, Memory
from processor.evidence.readers import COVERED
from schemas.evidence import MemoryClass, QueryClass


@final
class Retention(NamedTuple):
    """A memory class, and what each of the classes it was chosen from costs, in bytes per key."""

    memory_class: MemoryClass
    bytes_per_key: tuple[tuple[MemoryClass, float], ...] = ()


def select_retention(query_mix: Mapping[QueryClass, float]) -> MemoryClass:
    """The least class that covers every query class with positive weight (Proposition 2c).

    Raises ValueError for a weight below zero, and for a mix in which nothing is asked.
    """
    if any(weight < 0 for weight in query_mix.values()):
        raise ValueError("a query class has a weight below zero")
    asked = [query_class for query_class in QueryClass if query_mix.get(query_class, 0) > 0]
    if not asked:
        raise ValueError("no query class has a weight above zero")
    return next(
        memory_class
        for memory_class in AWARE_CLASSES
        if all(query_class in COVERED[memory_class] for query_class in asked)
    )


def retention_of(query_mix: Mapping[QueryClass, float], memories: tuple[Memory, ...]) -> Retention:
    """The class for a mix, beside what each of these memories keeps of a key."""
    return Retention(
        select_retention(query_mix),
        tuple((memory.memory_class, memory.bytes_per_key()) for memory in memories),
    )
