"""The worker: Faust runs two thin agents, everything they do is somewhere else.

This is its life and what a rebalance does to it: a new epoch begins, calls are cancelled, what was
in hand is forgotten (it comes again), and the log is folded up to the group's place before Faust
delivers anything. What the agents do is in `agents.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import suppress
from typing import Any, final

import structlog
from faust.types import TP

from processor.app.agents import Agents
from processor.app.assignment import Assignment
from processor.app.checkpoints import Recovery
from processor.app.conversations import ConversationsOfWorker
from processor.app.dispatcher import Dispatcher, Kind, Limits
from processor.app.faust_app import (
    App,
    ConsumerFlow,
    add_agent,
    address_of,
    consumer_runs,
    new_app,
)
from processor.app.folded_utterances import FoldedUtterances
from processor.app.gauges import gauges
from processor.app.instance import Instance, InstanceTaken
from processor.app.intake import Intake
from processor.app.interpret_agent import InterpretAgent
from processor.app.kafka_log import KafkaLog
from processor.app.local_store import LocalStore
from processor.app.messages import OPERATIONS, UTTERANCES
from processor.app.metrics import Gauge, Metrics
from processor.app.progress import EpochEnded, FoldProgress
from processor.app.publisher import Publisher
from processor.app.reduce_agent import PartitionStopped, ReduceAgent
from processor.app.sender import Sender
from processor.app.settings import KafkaSettings, WorkerSettings
from processor.app.shared_choice import shared_place
from processor.app.tenants import read_tenants
from processor.app.topic_watch import TopicsChanged, TopicWatch, mend_places
from processor.app.tracing import Tracing
from processor.app.utterance_reader import OUTAGE_PATIENCE_S
from processor.app.worker_erasure import WorkerErasure
from processor.app.worker_keys import WorkerKeys
from processor.interpreter.port import Interpreter

WORK_MAX = 256
"""How many utterances that need no model are worked on at a time: as many are appended together."""

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
        outage_patience_s: float = OUTAGE_PATIENCE_S,
        keys: WorkerKeys | None = None,
    ) -> None:
        self.settings = settings
        self.tenants = read_tenants(settings.tenants)
        self._keys = keys
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._kafka = kafka
        self._connection = kafka.client_options()
        self._store = store
        store.on_failure = self._crash
        self._sender = sender
        self._progress = FoldProgress()
        self._assignment = Assignment()
        folded = FoldedUtterances()
        self.metrics = Metrics(self._gauges, settings.metric_tenants)
        tracing = tracing or Tracing()
        self._kafka_log = KafkaLog(sender, store, self._progress, self.metrics, tracing, keys)
        self._reduce = ReduceAgent(
            *(store, self._progress, self.metrics.refused, folded.tell),
            *(self._kafka_log.appended, keys),
        )
        place = shared_place(settings, self._connection, sender)
        self._recovery = Recovery(
            self._connection, settings.group, store, place, self._reduce, self._progress
        )
        self._publisher = Publisher(self._connection, settings.group, store, place)
        self._regular: list[asyncio.Task[None]] = []
        self._interpret = self._new_interpret(interpreter, outage_patience_s)
        self._dispatcher = Dispatcher(
            {
                Kind.CALL: Limits(settings.calls_max, settings.calls_per_tenant_max),
                Kind.WORK: Limits(WORK_MAX, WORK_MAX // 2),
            },
            on_crash=self._crash,
        )
        self._instance = Instance(kafka, settings.group, settings.instance)
        self._app = self._new_app()
        self._watch = TopicWatch(kafka, self._app)
        self._intake = Intake(
            ConsumerFlow(self._app),
            settings.in_hand_max,
            on_acknowledged=self.metrics.acknowledged,
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._endpoint_answers = True
        self.conversations = self._new_conversations(folded, tracing)

    def _new_conversations(
        self, folded: FoldedUtterances, tracing: Tracing
    ) -> ConversationsOfWorker:
        keys = self._keys
        erasure = None if keys is None else WorkerErasure(self._kafka, self._sender, keys)
        return ConversationsOfWorker(
            host=self,
            store=self._store,
            progress=self._progress,
            interpret=self._interpret,
            dispatcher=self._dispatcher,
            folded=folded,
            address=self.settings.canonical_url,
            peers=self.settings.peers,
            keys=keys,
            erasure=erasure,
            tracing=tracing,
        )

    def _new_interpret(
        self, interpreter: Interpreter | None, outage_patience_s: float
    ) -> InterpretAgent:
        return InterpretAgent(
            log=self._kafka_log,
            dead_letters=self._kafka_log,
            interpreter=interpreter,
            tenants=self.tenants,
            outage_patience_s=outage_patience_s,
            on_endpoint=self.note_endpoint,
        )

    def _new_app(self) -> App:
        app = new_app(self.settings, self._kafka, self._instance.client_id)
        app.on_partitions_revoked.connect(self._on_revoked)
        app.on_rebalance_complete.connect(self._on_rebalance_complete)
        return app

    def _add_agents(self) -> None:
        agents = Agents(
            settings=self.settings,
            assignment=self._assignment,
            intake=self._intake,
            dispatcher=self._dispatcher,
            interpret=self._interpret,
            reduce=self._reduce,
            log=self._kafka_log,
            in_background=self._in_background,
            on_stopped=self._stop_partition,
            on_failure=self._crash,
        )
        for topic, take in (
            (UTTERANCES, agents.take_utterance),
            (OPERATIONS, agents.take_event),
        ):
            add_agent(self._app, topic, take, lambda: self._progress.epoch)

    # -- the life of the worker -------------------------------------------------------------------

    async def start(self) -> None:
        """Join the group."""
        self._kafka_log.partitions = await self._sender.partitions(UTTERANCES)
        self._watch.partitions = self._kafka_log.partitions
        self._add_agents()
        self._app.finalize()
        await self._app.start()
        for work in (self._publisher.run(self.settings.checkpoint_seconds), self._watch.run()):
            task = asyncio.create_task(work)
            task.add_done_callback(self._ended)
            self._regular.append(task)
        _log.info(
            "worker_started", group=self.settings.group, partitions=self._kafka_log.partitions
        )

    async def drain(self) -> None:
        """Finish what is in hand, take nothing new, commit, and leave the group.

        The log is read on until then: what is in hand waits for its own event to be folded.
        """
        consumer = self._app.consumer
        consumer.pause_partitions({tp for tp in consumer.assignment() if tp.topic == UTTERANCES})
        await self._dispatcher.idle()
        await asyncio.gather(*self._tasks)
        await consumer.commit()
        for task in self._regular:
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.drain_seconds_max / 2):
                await self._publisher.publish()
        await self._publisher.stop()
        await self._app.stop()
        if self._keys is not None:
            await self._keys.end()

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
        was_member = self._assignment.status() is not None
        self._progress.new_epoch()
        self._kafka_log.new_epoch()
        self._intake.forget()
        self._assignment.forget()
        self.conversations.new_epoch()
        self._store.forget_conversations()
        await self._publisher.stop()
        await self._dispatcher.cancel()
        if self._keys is not None:
            await self._keys.end()
        if was_member:  # before the first time, who has our place may be the process before us
            try:
                await self._instance.check()
            except InstanceTaken as taken:
                self._crash(taken)

    async def _on_rebalance_complete(self, *_: object, **__: object) -> None:
        partitions = sorted(
            place.partition
            for place in self._app.consumer.assignment()
            if place.topic == OPERATIONS
        )
        try:
            await self._watch.check()
        except TopicsChanged as changed:
            self._crash(changed)
            return
        self._assignment.begin(partitions)
        _log.info("partitions_assigned", partitions=partitions)
        if partitions:  # a failure must end the worker: Faust would wait for ever
            await asyncio.wait([self._in_background(self._recover(partitions))])

    async def _recover(self, partitions: list[int]) -> None:
        """Fold each partition up to where the group has come, unless a new epoch begins."""
        with suppress(EpochEnded):
            if self._keys is not None:
                await self._keys.begin(partitions)
            await mend_places(self._app, self._connection, self.settings.group, partitions)
            ends = await self._recovery.run(partitions, self._stop_partition)
            for partition, end in ends.items():
                ready = self._assignment.ready(partition)
                if ready is not None and not self._assignment.is_stopped(partition):
                    self._in_background(self._tell_when_folded(partition, end, ready))
            self._publisher.begin(partitions)

    def _stop_partition(self, stopped: PartitionStopped) -> None:
        """Its log cannot be read on: it waits, not ready, for a newer worker; the others go on."""
        partition = stopped.partition
        _log.error("partition_stopped", partition=partition, reason=str(stopped))
        self._assignment.stop(partition)
        for topic in (UTTERANCES, OPERATIONS):
            self._app.consumer.on_buffer_full(TP(topic, partition))
        self._progress.stop(partition)
        self._in_background(self._dispatcher.cancel(frozenset({partition})))

    async def _tell_when_folded(self, partition: int, end: int, ready: asyncio.Event) -> None:
        if end > 0:
            await self._progress.folded(partition, end - 1)
        ready.set()

    def _gauges(self) -> Iterator[Gauge]:
        return gauges(
            self._app,
            self._intake,
            self._dispatcher,
            self._assignment,
            self._store,
            self.conversations,
        )

    # -- what it says about itself ----------------------------------------------------------------

    def assignment(self) -> Mapping[int, bool] | None:
        """Its partitions, and whether each is ready; None before the first and in a rebalance."""
        return self._assignment.status()

    def partition_of(self, key: bytes) -> int:
        """Where messages with the key belong."""
        return self._kafka_log.partition_of(key)

    def address_of(self, partition: int) -> str | None:
        """Where the group says that the owner of a partition can be reached."""
        return address_of(self._app, OPERATIONS, partition)

    def consumer_runs(self) -> bool:
        """Whether the thread that talks to the group has not died; True before it is started."""
        return consumer_runs(self._app)

    def endpoint_answers(self) -> bool:
        """Whether the interpreter's endpoint answered when it was asked last."""
        return self._endpoint_answers

    def note_endpoint(self, answers: bool) -> None:
        """Remember whether the interpreter's endpoint answered just now."""
        self._endpoint_answers = answers
        if not answers:
            self.metrics.endpoint_failed()
