"""The worker: Faust runs two thin agents, everything they do is somewhere else.

The agents take a message, hand it over and go on; a message is acknowledged when it, and all before
it on its partition, are done with. A rebalance begins a new epoch: calls are cancelled, what was in
hand is forgotten (it comes again), and the log is folded up to the group's place before Faust
delivers anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from typing import Any, final

import faust
import structlog
from faust.types import TP

from processor.app.checkpoints import Recovery
from processor.app.conversations import ConversationsOfWorker
from processor.app.dispatcher import Dispatcher, Lane
from processor.app.faust_app import (
    App,
    ConsumerFlow,
    address_of,
    consumer_runs,
    delivered,
    new_app,
)
from processor.app.folded_utterances import FoldedUtterances
from processor.app.gauges import gauges
from processor.app.intake import Intake
from processor.app.interpret import DeadLetterClass, Unusable
from processor.app.interpret_agent import EventTooLarge, InterpretAgent
from processor.app.local_store import LocalStore
from processor.app.messages import (
    OPERATIONS,
    UTTERANCES,
    Delivered,
    dead_letter_message,
    derived_messages,
    log_message,
)
from processor.app.metrics import Gauge, Metrics
from processor.app.partitions import partition_of
from processor.app.progress import EpochEnded, FoldProgress
from processor.app.publisher import Publisher
from processor.app.reduce_agent import Folded, PartitionStopped, ReduceAgent
from processor.app.sender import MessageTooLarge, Sender
from processor.app.settings import KafkaSettings, WorkerSettings
from processor.app.shared_choice import shared_place
from processor.app.supersession import Supersessions
from processor.app.tracing import Tracing
from processor.app.turn_line import said, turn_line
from processor.engine.conversation import Conversation
from processor.interpreter.port import Interpreter
from replay.errors import StoreError
from schemas.log import LogEvent

_log = structlog.get_logger(__name__)


@final
class Worker:
    """One worker of a group. `failed` gets what must end it, if anything does."""

    def __init__(
        self,
        settings: WorkerSettings,
        kafka: KafkaSettings,
        store: LocalStore,
        sender: Sender,
        interpreter: Interpreter | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self._tracing = tracing or Tracing()
        self.settings = settings
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._kafka = kafka
        self._connection = kafka.client_options()
        self._store = store
        store.on_failure = self._crash
        self._sender = sender
        self._progress = FoldProgress()
        self._ready: dict[int, asyncio.Event] = {}
        self._stopped: set[int] = set()
        folded = FoldedUtterances()
        self.metrics = Metrics(
            lambda: gauges(self._app, self._intake, self._dispatcher, self._ready, store)
        )
        self._reduce = ReduceAgent(store, self._progress, self.metrics.refused, folded.tell)
        place = shared_place(settings, self._connection, sender)
        self._recovery = Recovery(
            self._connection, settings.group, store, place, self._reduce, self._progress
        )
        self._publisher = Publisher(self._connection, settings.group, store, place)
        self._publishing: asyncio.Task[None] | None = None
        self._interpret = InterpretAgent(
            log=self,
            dead_letters=self,
            interpreter=interpreter,
            supersessions=Supersessions(settings.supersession, settings.supersession_of_tenants),
            on_endpoint=self._note_endpoint,
        )
        self._dispatcher = Dispatcher(
            running_max=settings.calls_max,
            running_per_tenant_max=settings.calls_per_tenant_max,
            on_crash=self._crash,
        )
        self._app = self._new_app()
        self._intake = Intake(ConsumerFlow(self._app), settings.in_hand_max)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_assigned = False
        self._endpoint_answers = True
        self.conversations = ConversationsOfWorker(
            host=self,
            store=store,
            progress=self._progress,
            interpret=self._interpret,
            dispatcher=self._dispatcher,
            folded=folded,
            address=settings.canonical_url,
            peers=settings.peers,
        )

    def _new_app(self) -> App:
        app = new_app(self.settings, self._kafka)
        for name, take in ((UTTERANCES, self._take_utterance), (OPERATIONS, self._take_event)):
            self._add_agent(app, name, take)
        app.on_partitions_revoked.connect(self._on_revoked)
        app.on_rebalance_complete.connect(self._on_rebalance_complete)
        return app

    def _add_agent(
        self, app: App, name: str, take: Callable[[faust.Event], Awaitable[None]]
    ) -> None:
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

    # -- the life of the worker -------------------------------------------------------------------

    async def start(self) -> None:
        """Join the group."""
        self._partitions = await self._sender.partitions(UTTERANCES)
        self._app.finalize()
        await self._app.start()
        self._publishing = asyncio.create_task(
            self._publisher.run(self.settings.checkpoint_seconds)
        )
        self._publishing.add_done_callback(self._ended)
        _log.info("worker_started", group=self.settings.group, partitions=self._partitions)

    async def drain(self) -> None:
        """Finish what is in hand, take nothing new, commit, and leave the group.

        The log is read on until then: what is in hand waits for its own event to be folded.
        """
        consumer = self._app.consumer
        consumer.pause_partitions({tp for tp in consumer.assignment() if tp.topic == UTTERANCES})
        await self._dispatcher.idle()
        await asyncio.gather(*self._tasks)
        await consumer.commit()
        if self._publishing is not None:
            self._publishing.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.drain_seconds_max / 2):
                await self._publisher.publish()
        await self._publisher.stop()
        await self._app.stop()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._crash(error)

    def _crash(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    # -- rebalances -------------------------------------------------------------------------------

    async def _on_revoked(self, *_: object, **__: object) -> None:
        self._progress.new_epoch()
        self._intake.forget()
        self._ready = {}
        self._stopped.clear()
        self._is_assigned = False
        self.conversations.new_epoch()
        self._store.forget_conversations()
        await self._publisher.stop()
        await self._dispatcher.cancel()

    async def _on_rebalance_complete(self, *_: object, **__: object) -> None:
        partitions = sorted(
            place.partition
            for place in self._app.consumer.assignment()
            if place.topic == OPERATIONS
        )
        self._ready = {partition: asyncio.Event() for partition in partitions}
        self._is_assigned = True
        _log.info("partitions_assigned", partitions=partitions)
        if partitions:  # a failure must end the worker: Faust would wait for ever
            await asyncio.wait([self._in_background(self._recover(partitions))])

    async def _recover(self, partitions: list[int]) -> None:
        """Fold each partition up to where the group has come, unless a new epoch begins."""
        with suppress(EpochEnded):
            ends = await self._recovery.run(partitions, self._stop_partition)
            for partition in ends.keys() - self._stopped:
                ready = self._ready[partition]
                self._in_background(self._tell_when_folded(partition, ends[partition], ready))
            self._publisher.begin(partitions)

    def _stop_partition(self, stopped: PartitionStopped) -> None:
        """Its log cannot be read on: it waits, not ready, for a newer worker; the others go on."""
        partition = stopped.partition
        _log.error("partition_stopped", partition=partition, reason=str(stopped))
        self._stopped.add(partition)
        self._ready[partition] = asyncio.Event()
        for topic in (UTTERANCES, OPERATIONS):
            self._app.consumer.on_buffer_full(TP(topic, partition))
        self._progress.stop(partition)
        self._in_background(self._dispatcher.cancel(frozenset({partition})))

    async def _tell_when_folded(self, partition: int, end: int, ready: asyncio.Event) -> None:
        if end > 0:
            await self._progress.folded(partition, end - 1)
        ready.set()

    # -- the agents -------------------------------------------------------------------------------

    def _take_in(self, message: Delivered, event: faust.Event) -> Callable[[], None] | None:
        is_stopped = message.partition in self._stopped
        return None if is_stopped else self._intake.take(message, event)

    async def _take_utterance(self, event: faust.Event) -> None:
        message = delivered(event)
        done = self._take_in(message, event)
        if done is None:
            return
        tenant, _, conversation = (message.key or b"").decode(errors="replace").partition("/")
        ready = self._ready.get(message.partition)

        async def job() -> None:
            if ready is not None:
                await ready.wait()
            with self._tracing.span("interpret", message):
                await self._interpret.handle(message)
            done()

        self._dispatcher.submit(Lane(message.partition, tenant, conversation), job)

    async def _take_event(self, event: faust.Event) -> None:
        message = delivered(event)
        done = self._take_in(message, event)
        if done is None:
            return
        try:
            folded = await self._reduce.fold(message)
        except PartitionStopped as stopped:
            self._stop_partition(stopped)
            return
        except StoreError as failure:
            self._crash(failure)
            return
        except EpochEnded:
            return
        if folded is None:
            done()
            return
        self._in_background(self._emit(folded, message, self._delivered_at(folded), done))

    async def _emit(
        self,
        folded: Folded,
        message: Delivered,
        delivered_at: float | None,
        done: Callable[[], None],
    ) -> None:
        with self._tracing.span("emit", message):
            outgoing = derived_messages(
                folded.derived,
                folded.event.at,
                message.partition,
                self.settings.alert_tenants,
                self._tracing.carried(),
            )
            for too_large in await self._sender.send_all(outgoing):
                letter = Unusable(DeadLetterClass.TOO_LONG, "", f"{too_large.topic}: too long")
                derived = Delivered(*too_large[:2], message.offset, too_large.key, too_large.value)
                await self.write(derived, letter, 0)
        self._tell(folded, message, delivered_at)
        done()

    def _delivered_at(self, folded: Folded) -> float | None:
        """When the utterance of an event that was just folded came here, if it did."""
        told = folded.event.utterance
        if told.partition is None or told.offset is None:
            return None
        age = self._intake.age_s((UTTERANCES, told.partition), told.offset)
        return None if age is None else time.monotonic() - age

    def _tell(self, folded: Folded, message: Delivered, delivered_at: float | None) -> None:
        """Count an event that is done with, and write its line."""
        seconds = None if delivered_at is None else time.monotonic() - delivered_at
        self.metrics.emitted(folded, seconds)
        line = turn_line(folded, message, seconds)
        if self.settings.log_claims:
            line["claims"] = said(folded.event)
        _log.info("turn", **line)

    def _gauges(self) -> Iterator[Gauge]:
        return gauges(self._app, self._intake, self._dispatcher, self._ready, self._store)

    # -- what it says about itself ----------------------------------------------------------------

    def assignment(self) -> Mapping[int, bool] | None:
        """Its partitions, and whether each is ready; None before the first and in a rebalance."""
        if not self._is_assigned:
            return None
        return {partition: ready.is_set() for partition, ready in self._ready.items()}

    def address_of(self, partition: int) -> str | None:
        """Where the group says that the owner of a partition can be reached."""
        return address_of(self._app, OPERATIONS, partition)

    def consumer_runs(self) -> bool:
        """Whether the thread that talks to the group has not died; True before it is started."""
        return consumer_runs(self._app)

    def endpoint_answers(self) -> bool:
        """Whether the interpreter's endpoint answered when it was asked last."""
        return self._endpoint_answers

    def _note_endpoint(self, answers: bool) -> None:
        self._endpoint_answers = answers
        if not answers:
            self.metrics.endpoint_failed()

    # -- what the interpret agent sees of the log -------------------------------------------------

    def partition_of(self, key: bytes) -> int:
        """Where messages with the key belong."""
        return partition_of(key, self._partitions)

    async def conversation(
        self, partition: int, tenant_id: str, conversation_id: str
    ) -> Conversation:
        """The conversation as far as its log is folded."""
        del partition
        return await self._store.conversation(tenant_id, conversation_id)

    async def append(self, partition: int, event: LogEvent) -> int:
        """Append to the log. Raises EventTooLarge."""
        try:
            return await self._sender.send(log_message(event, partition, self._tracing.carried()))
        except MessageTooLarge as too_large:
            raise EventTooLarge(str(too_large)) from too_large

    async def folded(self, partition: int, offset: int) -> None:
        """Return when the log is folded beyond the offset."""
        await self._progress.folded(partition, offset)

    async def write(self, message: Delivered, letter: Unusable, attempts: int) -> None:
        """Write a dead letter, and return when the broker has it."""
        await self._sender.send(dead_letter_message(message, letter, attempts))
        self.metrics.dead_letter(letter.dead_letter_class)
        _log.warning(
            "dead_letter",
            partition=message.partition,
            offset=message.offset,
            reason_class=letter.dead_letter_class.value,
        )
