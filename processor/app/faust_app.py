"""The Faust app of a worker, and all that is peculiar to Faust.

Topics are provisioned by us, the tables and the web server are not used, and the wait for messages
in hand at a rebalance or at the end is our own, because Faust's has no limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast, final

import faust
from faust.assignor.partition_assignor import PartitionAssignor
from faust.sensors import Monitor
from faust.transport.consumer import Consumer
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode.services import WaitResults

from processor.app.fetched import install
from processor.app.intake import Place
from processor.app.messages import Delivered
from processor.app.settings import KafkaSettings, WorkerSettings

SESSION_SECONDS = 10.0
REBALANCE_SECONDS = 20.0
COMMIT_SECONDS = 0.5
FETCH_PAUSE_S, FETCH_PAUSE_MANY_S = 0.001, 0.015
"""Between two questions for messages, after one that gave some, and after one that gave many."""
_MANY = 60


class _ConsumerThread(driver.AIOKafkaConsumerThread):
    """The driver fixes how long a fetch may wait for messages; this makes it a setting."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        install()
        consumer = super()._create_worker_consumer(transport)
        assert hasattr(consumer, "_fetch_max_wait_ms"), "aiokafka has changed"
        consumer._fetch_max_wait_ms = cast(App, self.app).fetch_wait_ms
        # Any other gives the two ends of a conversation to two workers, and knows no addresses.
        assert isinstance(self._assignor, PartitionAssignor), "Faust has another assignor"
        return consumer


class _Consumer(driver.Consumer):
    _fetched = 0

    def _new_consumer_thread(self) -> Any:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        """Ask for messages, a little later if there were some: asking costs the same for many."""
        if self._fetched:
            await asyncio.sleep(FETCH_PAUSE_MANY_S if self._fetched > _MANY else FETCH_PAUSE_S)
        fetched = await super()._getmany(active_partitions, timeout)
        self._fetched = sum(map(len, fetched.values()))
        return fetched

    async def wait_first(self, *awaited: Any, timeout: Any = None) -> Any:
        """Hand a message on without a task for each thing that could interrupt that.

        Faust races every message against the end of the consumer and a suspended flow, with four
        tasks. Handing on waits for nothing but our agents, which always take, unless the flow is
        suspended already.
        """
        if timeout is None and len(awaited) == 2 and self.app.flow_control.is_active():
            handing_on, suspension = awaited
            suspension.close()
            return WaitResults([handing_on], [await handing_on], stopped=False)
        return await super().wait_first(*awaited, timeout=timeout)

    async def perform_seek(self) -> None:
        """Go back to what is committed, also where that is nothing.

        aiokafka does not seek to offset 0. What was fetched of such a partition while it was being
        assigned, and is not delivered for that, would be passed over until the next start.
        """
        await super().perform_seek()
        from_the_start = {place: 0 for place in self.assignment() if not self._read_offset[place]}
        if from_the_start:
            await self.seek_wait(from_the_start)


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


class _Transport(driver.Transport):
    Consumer = _Consumer


@final
class App(faust.App):
    """A Faust app whose consumer waits `fetch_wait_ms` for messages."""

    fetch_wait_ms: int

    def _new_transport(self) -> Any:
        return _Transport(self.conf.broker_consumer, self)


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


def add_agent(app: App, name: str, take: Callable[[faust.Event], Awaitable[None]]) -> None:
    """An agent that hands each message of a topic on, as bytes, and acknowledges none."""
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
            if event.message.generation_id == app.consumer_generation_id:
                await take(event)  # what was fetched before a rebalance comes again

    app.agent(topic, name=name, concurrency=1)(agent)


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
    """Stops and resumes fetching of a partition."""

    def __init__(self, app: App) -> None:
        self._app = app

    def stop(self, place: Place) -> None:
        """Fetch no more from it."""
        self._app.consumer.on_buffer_full(TP(*place))

    def resume(self, place: Place) -> None:
        """Fetch from it again."""
        self._app.consumer.on_buffer_drop(TP(*place))


def delivered(event: faust.Event) -> Delivered:
    """The message of one of Faust's events."""
    message = event.message
    place = (message.topic, message.partition, message.offset)
    headers = dict(message.headers or ())  # Faust hands them on as a list or a mapping
    return Delivered(*place, message.key, message.value, tuple(headers.items()))


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
