"""Sending utterances to the brokers: in order, in batches, each acknowledged by all replicas."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError

from processor.app.connection import connected
from processor.app.lines import Line
from processor.app.messages import UTTERANCES, utterance_message
from processor.app.partitions import partition_of
from processor.app.settings import KafkaSettings
from processor.app.topics import partition_count
from schemas.contract import UTTERANCE_BYTES_MAX
from schemas.ids import conversation_key
from schemas.topics import BY_NAME
from schemas.utterance import Utterance
from schemas.wire import WireError, decode_utterance

LINGER_MS = 5
BATCH_BYTES_MAX = 262_144
UNACKNOWLEDGED_MAX = 5_000
REQUEST_BYTES_MAX = 2 * BY_NAME[UTTERANCES].message_bytes_max
_YIELD_EVERY = 100


@final
class BadLine(NamedTuple):
    """A line that was not sent."""

    line: Line
    problem: str


@final
@dataclass
class Sent:
    """What became of the lines so far: `sent` counts those that the brokers acknowledged."""

    sent: int = 0
    bad_lines: int = 0
    first_bad: BadLine | None = None

    def bad(self, line: Line, problem: str) -> None:
        """Count a line that cannot be sent."""
        self.bad_lines += 1
        bad = BadLine(line, problem)
        if self.first_bad is None or line.number < self.first_bad.line.number:
            self.first_bad = bad


async def produce(settings: KafkaSettings, lines: AsyncIterable[Line], result: Sent) -> None:
    """Send every good line, and wait until the brokers have them all.

    `result` is up to date at any time, also after a BrokerError.
    """
    partitions = await partition_count(settings, UTTERANCES)
    async with idempotent_producer(settings) as producer:
        waiting: deque[tuple[Line, asyncio.Future[object]]] = deque()
        count = 0
        async for line in lines:
            count += 1
            try:
                utterance = _read(line)
                future = await _send(producer, line, utterance, partitions)
            except WireError as invalid:
                result.bad(line, str(invalid))
                continue
            except MessageSizeTooLargeError:
                result.bad(line, "too large for the topic")
                continue
            waiting.append((line, future))
            if len(waiting) > UNACKNOWLEDGED_MAX:
                await _acknowledged(*waiting.popleft(), result)
            if count % _YIELD_EVERY == 0:
                await asyncio.sleep(0)  # the sender runs in this loop too
        while waiting:
            await _acknowledged(*waiting.popleft(), result)


def _read(line: Line) -> Utterance:
    if line.content is None:
        raise WireError("", f"{line.size:,} bytes; a line may have {UTTERANCE_BYTES_MAX:,}")
    return decode_utterance(line.content)


async def _send(
    producer: Any, line: Line, utterance: Utterance, partitions: int
) -> asyncio.Future[object]:
    assert line.content is not None
    key = conversation_key(utterance.tenant_id, utterance.conversation_id).encode()
    message = utterance_message(utterance, line.content, partition_of(key, partitions))
    future: asyncio.Future[object] = await producer.send(
        message.topic,
        message.value,
        message.key,
        message.partition,
        headers=list(message.headers),  # its compiled parts take no tuple
    )
    return future


async def _acknowledged(line: Line, future: asyncio.Future[object], result: Sent) -> None:
    try:
        await future
    except MessageSizeTooLargeError:
        result.bad(line, "too large for the topic")
    else:
        result.sent += 1


@asynccontextmanager
async def idempotent_producer(
    settings: KafkaSettings, request_bytes_max: int = REQUEST_BYTES_MAX
) -> AsyncIterator[Any]:
    """A producer that waits for all replicas and repeats nothing. Raises BrokerError."""
    producer = AIOKafkaProducer(
        **settings.client_options(),
        enable_idempotence=True,
        acks="all",
        linger_ms=LINGER_MS,
        max_batch_size=BATCH_BYTES_MAX,
        max_request_size=request_bytes_max,
    )
    async with connected(settings, producer):
        yield producer
