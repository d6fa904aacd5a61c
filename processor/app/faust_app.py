"""The Faust app of a worker, and all that is peculiar to Faust.

Topics are provisioned by us, the tables and the web server are not used, and the wait for messages
in hand at a rebalance or at the end is our own, because Faust's has no limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast, final

import faust
from faust.assignor.partition_assignor import PartitionAssignor
from faust.sensors import Monitor
from faust.types import TP

from processor.app.faust_consumer import Batch, Consumer, Transport
from processor.app.intake import Place
from processor.app.messages import Delivered
from processor.app.settings import KafkaSettings, WorkerSettings

SESSION_SECONDS = 10.0
REBALANCE_SECONDS = 20.0
COMMIT_SECONDS = 0.5
TOGETHER = 20
"""How many messages of a batch are taken before others get their turn of the event loop."""


class _NoMonitor(Monitor):
    """Faust's own statistics, left out: they cost time for each message, and we have our own."""

    def on_message_in(self, *_: Any) -> None:
        """Count nothing."""

    def on_message_out(self, *_: Any) -> None:
        """Count nothing."""

    def on_stream_event_in(self, *_: Any) -> None:
        """Count nothing."""

    def on_stream_event_out(self, *_: Any) -> None:
        """Count nothing."""


@final
class App(faust.App):
    """A Faust app whose consumer waits `fetch_wait_ms` for messages."""

    fetch_wait_ms: int

    def _new_transport(self) -> Any:
        return Transport(self.conf.broker_consumer, self)


def new_app(settings: WorkerSettings, kafka: KafkaSettings, client_id: str) -> App:
    """An app without agents. Raises SettingsError."""
    app = App(
        settings.group,
        broker=[f"aiokafka://{address}" for address in kafka.bootstrap.split(",")],
        broker_credentials=_credentials(kafka),
        broker_client_id=client_id,
        store="memory://",
        table_standby_replicas=1,  # there are no tables, but 0 would replace the assignor
        web_enabled=False,
        canonical_url=settings.canonical_url,  # which the assignor tells to all others
        topic_allow_declare=False,
        topic_disable_leader=True,
        stream_wait_empty=False,
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=settings.instance,
        broker_session_timeout=SESSION_SECONDS,
        broker_rebalance_timeout=REBALANCE_SECONDS,
        broker_commit_interval=COMMIT_SECONDS,
        broker_max_poll_interval=settings.recovery_seconds_max,
        stream_buffer_maxsize=settings.in_hand_max,
        monitor=_NoMonitor(),
    )
    app.fetch_wait_ms = settings.fetch_wait_ms
    return app


Take: TypeAlias = Callable[[Delivered], Awaitable[None]]


def add_agent(app: App, name: str, take: Take, epoch: Callable[[], int]) -> None:
    """An agent that hands each message of a topic on, as bytes, and acknowledges none.

    `epoch` tells of a rebalance after which Faust counts on from the same generation.
    """
    topic = app.topic(
        name,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        allow_empty=True,
    )

    async def agent(stream: Any) -> None:
        async for event in stream.noack().events():
            await take_all(app, event.message, take, epoch)

    app.agent(topic, name=name, concurrency=1)(agent)


async def take_all(app: App, batch: Batch, take: Take, epoch: Callable[[], int]) -> None:
    """Hand on each message of a batch; what was fetched before a rebalance comes again."""

    def now() -> tuple[int | None, int, bool]:
        return app.consumer_generation_id, epoch(), app.flow_control.is_active()

    its_own = (batch.generation_id, epoch(), True)
    try:
        for number, message in enumerate(batch.delivered, 1):
            if now() != its_own:
                return
            await take(message)
            if number % TOGETHER == 0:
                await asyncio.sleep(0)
    finally:
        batch.taken()


def lag(app: App) -> dict[tuple[str, ...], float]:
    """By topic and partition: how many messages there are beyond what is committed."""
    consumer = cast(Consumer | None, app._consumer)  # the property would make one
    if consumer is None:
        return {}
    behind: dict[tuple[str, ...], float] = {}
    for place, committed in consumer._committed_offset.items():
        end = consumer.highwater(place)
        if end is not None and committed is not None:
            behind[place.topic, str(place.partition)] = max(0, end - committed)
    return behind


def uncommitted(app: App) -> dict[tuple[str, ...], float]:
    """By topic and partition: how far the last message that was read lies beyond the committed."""
    consumer = cast(Consumer | None, app._consumer)  # the property would make one
    if consumer is None:
        return {}
    return {
        (place.topic, str(place.partition)): max(0, read - (consumer._committed_offset[place] or 0))
        for place, read in consumer._read_offset.items()
        if read is not None
    }


def read_beyond_end(app: App) -> list[TP]:
    """The partitions that end before what was read of them, as far as fetches have told."""
    consumer = cast(Consumer | None, app._consumer)  # the property would make one
    if consumer is None:
        return []
    ours = consumer.assignment()
    ends = {place: (consumer.highwater(place), consumer._read_offset[place]) for place in ours}
    return [place for place, (end, read) in ends.items() if end and read and end < read]


def consumer_runs(app: App) -> bool:
    """Whether the consumer's thread lives; True as long as there is none yet."""
    consumer = app._consumer  # the property would make one
    thread = getattr(getattr(consumer, "_thread", None), "_thread", None)
    return thread is None or bool(thread.is_alive())


def address_of(app: App, topic: str, partition: int) -> str | None:
    """The canonical URL of the worker to which the group gave a partition."""
    distribution = cast(PartitionAssignor, app.assignor).external_topics_metadata()
    for address, partitions in distribution.items():
        if partition in partitions.get(topic, ()):
            return str(address)
    return None


@final
class ConsumerFlow:
    """Stops and resumes fetching of a partition, and commits."""

    def __init__(self, app: App) -> None:
        self._app = app

    def stop(self, place: Place) -> None:
        """Fetch no more from it."""
        self._app.consumer.on_buffer_full(TP(*place))

    def resume(self, place: Place) -> None:
        """Fetch from it again, unless the worker drains."""
        consumer = cast(Consumer, self._app.consumer)
        if TP(*place) not in consumer._paused_partitions:
            consumer.on_buffer_drop(TP(*place))

    def acknowledge(self, place: Place, offset: int) -> None:
        """The message, and all before it, are done with."""
        cast(Consumer, self._app.consumer).acknowledge(TP(*place), offset)


def _credentials(kafka: KafkaSettings) -> Any:
    """What Faust calls the way to connect."""
    context = kafka.ssl_context()
    if kafka.security_protocol.sasl:
        assert kafka.password is not None
        return faust.SASLCredentials(
            username=kafka.username,
            password=kafka.password.get_secret_value(),
            mechanism=kafka.sasl_mechanism.value,
            ssl_context=context,
        )
    return None if context is None else faust.SSLCredentials(context=context)
