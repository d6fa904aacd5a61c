"""Reading all that partitions have by now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

import pytest
from aiokafka import TopicPartition

from processor.app import topic_reader
from processor.app.errors import BrokerError
from processor.app.fetched import Damage, Problem
from processor.app.settings import KafkaSettings
from processor.app.topic_reader import records_of

PLACES = [TopicPartition("keys", 0), TopicPartition("keys", 1)]


class Record(NamedTuple):
    """What aiokafka gives, as far as it matters here."""

    topic: str
    partition: int
    offset: int
    headers: tuple[tuple[str, bytes], ...] = ()


class Reader:
    """Gives one record at a time of what is not paused."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records
        self._at: dict[TopicPartition, int] = {}
        self._resumed: set[TopicPartition] = set()

    async def beginning_offsets(self, places: Collection[TopicPartition]) -> Any:
        """Of each partition the first of its records."""
        return {place: min([r.offset for r in self._of(place)], default=0) for place in places}

    async def end_offsets(self, places: Collection[TopicPartition]) -> Any:
        """Behind the last record of each."""
        return {place: max([r.offset + 1 for r in self._of(place)], default=0) for place in places}

    def _of(self, place: TopicPartition) -> list[Record]:
        return [each for each in self._records if each[:2] == tuple(place)]

    def seek(self, place: TopicPartition, offset: int) -> None:
        """Go there."""
        self._at[place] = offset

    def resume(self, place: TopicPartition) -> None:
        """Give its records."""
        self._resumed.add(place)

    def pause(self, place: TopicPartition) -> None:
        """Give them no more."""
        self._resumed.discard(place)

    async def position(self, place: TopicPartition) -> int:
        """The offset that comes next."""
        return self._at[place]

    async def getmany(self, place: TopicPartition, timeout_ms: int) -> Any:
        """The next record of a partition that is alone in being read."""
        assert timeout_ms
        assert self._resumed == {place}
        found = [each for each in self._of(place) if each.offset >= self._at[place]][:1]
        self._at[place] = found[0].offset + 1
        return {place: found}


def read(monkeypatch: pytest.MonkeyPatch, *records: Record) -> list[Record]:
    """All that is given of both partitions."""

    @asynccontextmanager
    async def reader(_: KafkaSettings, places: list[TopicPartition]) -> AsyncIterator[Reader]:
        assert places == PLACES
        yield Reader(list(records))

    monkeypatch.setattr(topic_reader, "paused_reader", reader)

    async def main() -> list[Record]:
        async with aclosing(records_of(KafkaSettings(bootstrap="b:1"), PLACES)) as found:
            return [each async for each in found]

    return asyncio.run(main())


def test_partitions_are_read_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each from its first record to its end, also where offsets are missing."""
    first, second = Record("keys", 0, 3), Record("keys", 0, 7)
    other = Record("keys", 1, 0)
    assert read(monkeypatch, other, first, second) == [first, second, other]


def test_damage_is_an_error_that_names_the_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody takes what was damaged for what was never there."""
    damaged = Record("keys", 1, 4, ((Problem.NAME, Damage(b"what is stored is damaged")),))
    with pytest.raises(BrokerError, match=r"keys/1: what is stored is damaged"):
        read(monkeypatch, Record("keys", 0, 0), damaged)
