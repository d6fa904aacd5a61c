"""How much to keep: the least memory class that covers the queries that are asked."""

from __future__ import annotations

from collections.abc import Mapping

from processor.evidence.memories import AWARE_CLASSES
from processor.evidence.readers import COVERED
from schemas.evidence import MemoryClass, QueryClass


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
