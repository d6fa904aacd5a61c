"""Say for a consumer group how far it has come, without being one of its members."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError

EMPTY_SECONDS_MAX = 120.0
"""How long a member that was killed can stay in the group, and then some."""

Offsets = Mapping[TopicPartition, int]


async def commit_from_outside(
    bootstrap: str,
    group: str,
    places: Sequence[TopicPartition],
    offsets: Callable[[Offsets], Offsets] = dict,
) -> None:
    """Commit for every place what `offsets` makes of the ends of the logs.

    A broker takes it only while the group has no members, and a killed worker is one for a while.
    """
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,  # of where it happens to be
    )
    await consumer.start()
    try:
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        async with asyncio.timeout(EMPTY_SECONDS_MAX):
            while True:
                try:
                    await consumer.commit(dict(offsets(ends)))
                    return
                except CommitFailedError:
                    await asyncio.sleep(0.5)
    finally:
        await consumer.stop()
