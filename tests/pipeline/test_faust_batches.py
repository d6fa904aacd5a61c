"""What Faust's consumer hands on together: in order, once, and nothing across a rebalance."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from processor.app.faust_app import TOGETHER, ConsumerFlow, take_all
from processor.app.faust_consumer import UNTAKEN_MAX, Batch, Consumer
from processor.app.messages import Delivered

PLACE, OTHER = TP("utterances", 3), TP("operations", 3)
EPOCH = 7


def batch(read: int | None, *offsets: int) -> Batch:
    """What the consumer makes of records with these offsets, having read up to one."""
    records = [SimpleNamespace(offset=each, key=b"k", value=b"v", headers=()) for each in offsets]
    app = SimpleNamespace(consumer_generation_id=EPOCH)
    consumer: Any = SimpleNamespace(_read_offset={PLACE: read}, app=app, _untaken=Counter())
    return Consumer._to_message(consumer, PLACE, records)


@pytest.mark.parametrize(
    ("read", "expected"), [(None, [4, 5, 9]), (5, [5, 9]), (10, [])], ids=["new", "within", "past"]
)
def test_what_was_fetched_before_a_seek_is_left_out(read: int | None, expected: list[int]) -> None:
    """Faust drops single messages that lie before its place; a batch may begin before it."""
    made = batch(read, 4, 5, 9)
    assert [each.offset for each in made.delivered] == expected
    assert (made.tp, made.offset, made.generation_id) == (PLACE, 9, EPOCH)
    assert all(each[:2] == PLACE and each[3:] == (b"k", b"v", ()) for each in made.delivered)


class Seeking(Consumer):
    """The consumer of one partition without a broker; nothing of it is committed."""

    def __init__(self) -> None:
        self._acked = defaultdict(list)
        self._untaken = Counter()
        self.app: Any = SimpleNamespace(in_recovery=False)
        self._paused_partitions = set()
        self._active_partitions = {PLACE, OTHER}
        self._buffered_partitions = set()
        self.asked: list[set[TP]] = []
        self._thread: Any = SimpleNamespace(getmany=self._ask)
        self._read_offset = defaultdict(lambda: None)
        self._committed_offset = defaultdict(lambda: None)
        self.sought: dict[TP, int] = {}

    async def _ask(self, partitions: set[TP], timeout: float) -> dict[TP, list[Any]]:
        assert timeout < 1 or partitions == {PLACE, OTHER}, "it waits for what it left out"
        self.asked.append(set(partitions))
        return {}

    async def seek_to_committed(self) -> dict[TP, int]:
        """Nowhere."""
        return {}

    def assignment(self) -> set[TP]:
        """The one partition."""
        return {PLACE}

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        """Note it."""
        self.sought |= partitions


def test_what_was_done_before_a_seek_is_not_committed_after_it() -> None:
    """The log may be another one, whose messages at those offsets nobody has seen."""
    consumer = Seeking()
    consumer.acknowledge(PLACE, 41)
    assert consumer._new_offset(PLACE) == 42
    asyncio.run(consumer.perform_seek())
    assert consumer.sought == {PLACE: 0}
    assert consumer._new_offset(PLACE) is None
    consumer.acknowledge(PLACE, 2)
    assert consumer._new_offset(PLACE) == 3


def test_what_is_done_while_partitions_are_taken_away_is_not_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They may be given back when others have gone on; nor is a batch an acknowledgement."""
    consumer = Seeking()

    async def taking_away(self: Consumer, revoked: set[TP]) -> None:
        self.acknowledge(PLACE, 41)

    monkeypatch.setattr(driver.Consumer, "on_partitions_revoked", taking_away)
    asyncio.run(consumer.on_partitions_revoked({PLACE}))
    assert consumer._new_offset(PLACE) is None
    assert consumer.ack(batch(None, 4)) is False
    assert consumer._new_offset(PLACE) is None


def test_a_partition_whose_batches_wait_is_not_asked_for_more() -> None:
    """Others are, and it is again once its agent has taken one; none at all would mean all."""

    async def main() -> list[set[TP]]:
        consumer = Seeking()
        both = {PLACE, OTHER}
        waiting = [Batch(PLACE, each, [], EPOCH, consumer._untaken) for each in range(UNTAKEN_MAX)]
        await consumer._getmany(both, 1.0)
        others = [Batch(OTHER, each, [], EPOCH, consumer._untaken) for each in range(UNTAKEN_MAX)]
        assert await consumer._getmany(both, 1.0) == {}
        waiting[0].taken()
        await consumer._getmany(both, 1.0)
        others[0].taken()
        await consumer._getmany(both, 1.0)
        assert both == {PLACE, OTHER}
        return consumer.asked

    assert asyncio.run(main()) == [{OTHER}, {PLACE}, {PLACE, OTHER}]


def test_nothing_resumes_what_is_paused() -> None:
    """A worker that drains takes no more utterances, however many it has done with."""
    consumer = Seeking()
    flow = ConsumerFlow(cast(Any, SimpleNamespace(consumer=consumer)))
    for place in (PLACE, OTHER):
        flow.stop(place)
    consumer.pause_partitions({PLACE})
    for place in (PLACE, OTHER):
        flow.resume(place)
    assert consumer._active_partitions == {OTHER}


def ends_of_epoch(app: Any) -> None:
    """The partitions were assigned anew."""
    app.consumer_generation_id += 1


def flow_stops(app: Any) -> None:
    """A rebalance has begun."""
    app.flow_control = SimpleNamespace(is_active=lambda: False)


def we_know(app: Any) -> None:
    """The partitions were assigned anew, and the group still counts the same generation."""
    app.epoch += 1


@pytest.mark.parametrize("happens", [ends_of_epoch, flow_stops, we_know])
def test_a_rebalance_ends_a_batch_where_it_is(happens: Any) -> None:
    """What comes after it in the batch comes again from the place that is committed."""
    flow = SimpleNamespace(is_active=lambda: True)
    app: Any = SimpleNamespace(consumer_generation_id=EPOCH, flow_control=flow, epoch=1)
    taken: list[int] = []

    async def take(message: Delivered) -> None:
        taken.append(message.offset)
        if message.offset == 5:
            happens(app)

    made = batch(None, 4, 5, 9)
    assert made._untaken[PLACE] == 1
    asyncio.run(take_all(app, made, take, lambda: app.epoch))
    assert taken == [4, 5]
    assert made._untaken[PLACE] == 0


def test_others_get_their_turn_within_a_batch() -> None:
    """However much was fetched, the event loop comes round after a few messages."""
    app: Any = SimpleNamespace(
        consumer_generation_id=EPOCH, flow_control=SimpleNamespace(is_active=lambda: True)
    )
    taken: list[int] = []
    seen: list[int] = []

    async def take(message: Delivered) -> None:
        taken.append(message.offset)

    async def look() -> None:
        while len(taken) < 3 * TOGETHER:
            seen.append(len(taken))
            await asyncio.sleep(0)

    whole = batch(None, *range(3 * TOGETHER))

    async def main() -> None:
        await asyncio.gather(take_all(app, whole, take, lambda: 1), look())

    asyncio.run(main())
    assert seen == [TOGETHER, 2 * TOGETHER]
