"""Batches as a client of another make may send them, byte for byte."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import NotLeaderForPartitionError, for_code
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy as Builder
from aiokafka.structs import TopicPartition


class RawName(str):
    """A header's name that is sent as these bytes, be they text or not."""

    raw: bytes

    def __new__(cls, raw: bytes) -> RawName:
        """Keep the bytes beside some text."""
        name = super().__new__(cls, raw.decode(errors="replace"))
        name.raw = raw
        return name

    def encode(self, *_: str, **__: str) -> bytes:
        """What the client puts on the wire."""
        return self.raw


class RawRecord(NamedTuple):
    """One record; without `timestamp_ms` it is of now."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None


async def send_batch(
    bootstrap: str, topic: str, partition: int, records: Sequence[RawRecord]
) -> None:
    """Send the records as one batch; raises what the broker answers."""
    builder = Builder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=16_777_216,
    )
    now = int(time.time() * 1_000)
    for offset, each in enumerate(records):
        at = now if each.timestamp_ms is None else each.timestamp_ms
        builder.append(offset, at, each.key, each.value, list(each.headers))
    await send_bytes(bootstrap, topic, partition, bytes(builder.build()))


async def send_bytes(bootstrap: str, topic: str, partition: int, batch: bytes) -> None:
    """Send a batch as it is; raises what the broker answers, once it leads the partition."""
    client = AIOKafkaClient(bootstrap_servers=bootstrap)
    await client.bootstrap()
    try:
        code = NotLeaderForPartitionError.errno
        while code == NotLeaderForPartitionError.errno:
            await client.set_topics([topic])
            code = await _send(client, TopicPartition(topic, partition), batch)
    finally:
        await client.close()
    if code:
        raise for_code(code)


async def _send(client: AIOKafkaClient, place: TopicPartition, batch: bytes) -> int:
    answer = await client.send(
        client.cluster.leader_for_partition(place),
        ProduceRequest(
            transactional_id=None,
            required_acks=-1,
            timeout=10_000,
            topics=[(place.topic, [(place.partition, batch)])],
        ),
    )
    ((_, ((_, code, *_),)),) = answer.topics
    return int(code)
