"""The partition of a key is the one that Java's producers choose."""

from __future__ import annotations

import pytest
from aiokafka.partitioner import DefaultPartitioner, murmur2
from hypothesis import given
from hypothesis import strategies as st

from processor.app.partitions import partition_of

JAVA_HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""From the tests of Apache Kafka's own clients (`UtilsTest.testMurmur2`), as signed integers."""


@pytest.mark.parametrize(("key", "java"), JAVA_HASHES.items())
def test_the_hash_is_javas(key: bytes, java: int) -> None:
    """The bytes that Kafka's tests hash have the hash that Kafka's tests expect."""
    assert murmur2(key) == java % 2**32
    assert partition_of(key, 2**31) == java & 0x7FFFFFFF
    assert partition_of(key, 12) == (java & 0x7FFFFFFF) % 12


@given(key=st.binary(min_size=1, max_size=200), partitions=st.integers(1, 1_000))
def test_the_partition_is_aiokafkas(key: bytes, partitions: int) -> None:
    """For any key and any number of partitions, aiokafka's default partitioner agrees."""
    everywhere = list(range(partitions))
    assert partition_of(key, partitions) == DefaultPartitioner()(key, everywhere, everywhere)
