"""Whether the topics are still those with which a worker began, and the group's place is in them.

A topic that is deleted, created anew, cut or given other partitions under a running worker is none
that it can go on with: what it holds of the log is of another one, or keys belong elsewhere. It
ends and says why; whoever starts it again starts on what is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast, final

import structlog
from aiokafka import TopicPartition
from faust.transport.consumer import Consumer

from processor.app.errors import BrokerError
from processor.app.faust_app import App, read_beyond_end
from processor.app.messages import OPERATIONS, UTTERANCES
from processor.app.recovery import committed_places, waiting_out
from processor.app.settings import KafkaSettings
from processor.app.topics import partition_counts

_log = structlog.get_logger(__name__)

WATCH_SECONDS = 10.0
CONFIRM_SECONDS = 2.0
TOPICS = (UTTERANCES, OPERATIONS)


class TopicsChanged(Exception):  # noqa: N818 - it says what happened
    """The topics are others than at the start; `str(error)` says how that shows."""


@final
class TopicWatch:
    """Looks at the topics on the brokers, of which each had so many partitions at the start."""

    def __init__(self, kafka: KafkaSettings, app: App) -> None:
        self._kafka = kafka
        self._app = app
        self.partitions = 0

    async def run(self) -> None:
        """Look again and again. Raises TopicsChanged."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            for place in read_beyond_end(self._app):
                raise TopicsChanged(
                    f"{place.topic}/{place.partition} ends before what was read of it: it was "
                    "created anew or cut; start the worker again"
                )
            await self.check()

    async def check(self) -> None:
        """Raise TopicsChanged if two looks find other partitions than there were at the start.

        A broker that has just started may not know every topic yet, so one look says little.
        """
        if await self._difference() is None:
            return
        await asyncio.sleep(CONFIRM_SECONDS)
        difference = await self._difference()
        if difference is not None:
            raise TopicsChanged(difference)

    async def _difference(self) -> str | None:
        """How the topics are others than at the start, if they are and a broker says so."""
        try:
            counts = await partition_counts(self._kafka)
        except BrokerError:
            return None  # brokers that do not answer are waited for by those who need them
        for name in TOPICS:
            count = counts.get(name)
            if count is None:
                return f"the topic {name} is gone; see standfast topics check"
            if count != self.partitions:
                return (
                    f"the topic {name} has {count} partitions, and had {self.partitions} when the "
                    "worker began: keys belong elsewhere now; see standfast topics check"
                )
        return None


async def mend_places(
    app: App, connection: Mapping[str, Any], group: str, partitions: Sequence[int]
) -> None:
    """Set a group's place that is beyond the end of its log back to the beginning.

    It was said of a log that is there no more. What is read and emitted once more has the same ids,
    so that changes nothing, and what is new is not passed over.
    """
    places = [TopicPartition(topic, each) for topic in TOPICS for each in partitions]
    committed = await committed_places(connection, group, places)
    ends = await waiting_out(lambda: app.consumer.highwaters(*places))
    beyond = [place for place in committed if committed[place] > ends[place]]
    if not beyond:
        return
    firsts = await waiting_out(lambda: app.consumer.earliest_offsets(*beyond))
    for place in beyond:
        _log.warning(
            "place_beyond_end",
            topic=place.topic,
            partition=place.partition,
            committed=committed[place],
            end=ends[place],
            begins_at=firsts[place],
        )
    await cast(Consumer, app.consumer)._commit(firsts)
