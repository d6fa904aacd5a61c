"""Which partition owns a conversation: murmur2 of the key, as Java's and Faust's producers do."""

from __future__ import annotations

from functools import lru_cache

from aiokafka.partitioner import murmur2

_KEYS_KEPT = 100_000
_POSITIVE = 0x7FFFFFFF


@lru_cache(_KEYS_KEPT)
def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key among so many."""
    hashed: int = murmur2(key)
    return (hashed & _POSITIVE) % partitions
