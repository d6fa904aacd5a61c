"""Faust's consumer, made to hand on what was fetched of a partition together.

Handing a message on costs Faust more than a worker's own work on it, and as much for a thousand as
for one. So an agent is given one message for each partition and fetch, which carries the others.
What is done with is told by its last offset (`Intake` decides which that is), in place of Faust's
bookkeeping of single messages, which can commit past one that is in hand.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, cast, final

from faust.assignor.partition_assignor import PartitionAssignor
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.tuples import ConsumerMessage
from mode.services import WaitResults

from processor.app.fetched import install
from processor.app.messages import Delivered

FETCH_PAUSE_S, FETCH_PAUSE_MANY_S = 0.001, 0.005
"""Between two questions for messages, after one that gave some, and after one that gave many."""
_MANY = 60
UNTAKEN_MAX = 4
"""Batches of a partition that its agent has not taken. Of one that has more no more is asked for:
Faust's own bound would count batches as messages, and each can be of a mebibyte."""


@final
class Batch(ConsumerMessage):
    """What was fetched of one partition up to an offset: `delivered`, in order.

    Until it is taken it is counted in `untaken`.
    """

    __slots__ = ("_untaken", "delivered")

    def __init__(
        self,
        tp: TP,
        last: int,
        delivered: list[Delivered],
        generation_id: int,
        untaken: Counter[TP],
    ) -> None:
        super().__init__(*tp, last, 0.0, 0, None, None, None, None, tp=tp)
        self.generation_id = generation_id
        self.delivered = delivered
        self._untaken = untaken
        untaken[tp] += 1

    def taken(self) -> None:
        """The agent is done with it."""
        self._untaken[self.tp] -= 1


class _ConsumerThread(driver.AIOKafkaConsumerThread):
    """The driver fixes how long a fetch may wait for messages; this makes it a setting."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        install()
        consumer = super()._create_worker_consumer(transport)
        assert hasattr(consumer, "_fetch_max_wait_ms"), "aiokafka has changed"
        consumer._fetch_max_wait_ms = cast(Any, self.app).fetch_wait_ms
        # Any other gives the two ends of a conversation to two workers, and knows no addresses.
        assert isinstance(self._assignor, PartitionAssignor), "Faust has another assignor"
        return consumer


class Consumer(driver.Consumer):
    """Hands on batches, and commits what `acknowledge` was told."""

    _fetched = 0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._untaken: Counter[TP] = Counter()

    def _new_consumer_thread(self) -> Any:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        """Ask for messages, a little later if there were some: asking costs the same for many."""
        if self._fetched:
            await asyncio.sleep(FETCH_PAUSE_MANY_S if self._fetched > _MANY else FETCH_PAUSE_S)
        full = {place for place, count in self._untaken.items() if count >= UNTAKEN_MAX}
        if full and active_partitions is not None:
            active_partitions = active_partitions - full
            if not active_partitions:  # asked for none, aiokafka gives all
                await asyncio.sleep(FETCH_PAUSE_MANY_S)
                return {}
            timeout = FETCH_PAUSE_MANY_S
        fetched = await super()._getmany(active_partitions, timeout)
        self._fetched = sum(map(len, fetched.values()))
        return {place: [records] for place, records in fetched.items() if records}

    async def wait_first(self, *awaited: Any, timeout: Any = None) -> Any:
        """Hand a batch on without a task for each thing that could interrupt that.

        Faust races it against the end of the consumer and a suspended flow, with four tasks and
        several turns of the event loop for each partition. Handing on waits for nothing but our
        agents, which always take, unless the flow is suspended already.
        """
        if timeout is None and len(awaited) == 2 and self.app.flow_control.is_active():
            handing_on, suspension = awaited
            suspension.close()
            return WaitResults([handing_on], [await handing_on], stopped=False)
        return await super().wait_first(*awaited, timeout=timeout)

    def _to_message(self, tp: TP, record: Any) -> Batch:
        """A batch; `record` is what `_getmany` gave of the partition."""
        read = self._read_offset[tp]
        delivered = [
            Delivered(tp.topic, tp.partition, each.offset, each.key, each.value, each.headers)
            for each in record
            if read is None or each.offset >= read  # what was fetched before a seek is left out
        ]
        generation = self.app.consumer_generation_id
        return Batch(tp, record[-1].offset, delivered, generation, self._untaken)

    def acknowledge(self, tp: TP, offset: int) -> None:
        """The message at the offset, and all before it, are done with: commit that, some time."""
        self._acked[tp] = [offset]

    def ack(self, message: Any) -> bool:
        """Nothing: a batch is not acknowledged, its messages are."""
        del message
        return False

    def _new_offset(self, tp: TP) -> int | None:
        """Up to where the partition is done with, from what `acknowledge` was told."""
        acked = self._acked[tp]
        return acked[-1] + 1 if acked else None

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Nothing: offsets that no message has are passed over by who acknowledges."""

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """They may be given back when others have gone on, or with another log."""
        await super().on_partitions_revoked(revoked)
        self._acked.clear()

    async def perform_seek(self) -> None:
        """Go back to what is committed, also where that is nothing, and forget what was done since.

        aiokafka does not seek to offset 0. What was fetched of such a partition while it was being
        assigned, and is not delivered for that, would be passed over until the next start. So would
        be what a log that was created anew has where an older one was acknowledged.
        """
        self._acked.clear()
        self._untaken = Counter()  # Faust throws away what waits
        await super().perform_seek()
        from_the_start = {place: 0 for place in self.assignment() if not self._read_offset[place]}
        if from_the_start:
            await self.seek_wait(from_the_start)


class Transport(driver.Transport):
    """Makes that consumer."""

    Consumer = Consumer
