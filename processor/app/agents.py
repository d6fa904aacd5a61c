"""What the two agents of a worker do with a message: thin, everything else is somewhere else.

They take a message, hand it over and go on; a message is acknowledged when it, and all before it on
its partition, are done with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from processor.app.assignment import Assignment
from processor.app.dispatcher import Dispatcher, Lane
from processor.app.fetched import Damage, problem_of
from processor.app.intake import Intake
from processor.app.interpret import DeadLetterClass, Unusable
from processor.app.interpret_agent import InterpretAgent
from processor.app.kafka_log import KafkaLog
from processor.app.logs import EventLines
from processor.app.messages import UTTERANCES, Delivered, Outgoing, derived_messages
from processor.app.progress import EpochEnded
from processor.app.reduce_agent import Folded, PartitionStopped, ReduceAgent, stopped_by
from processor.app.sender import Begun
from processor.app.settings import WorkerSettings
from processor.app.turn_line import said, turn_line
from replay.errors import StoreError


@final
class _Emission(NamedTuple):
    """An event that was folded; `delivered_at` is when its utterance came here, if it did."""

    folded: Folded
    message: Delivered
    delivered_at: float | None
    done: Callable[[], None]


@final
@dataclass
class Agents:
    """The agents of both topics.

    `in_background` runs what a message waits for; `on_stopped` is told of a log that cannot be read
    on, and `on_failure` of what must end the worker.
    """

    settings: WorkerSettings
    assignment: Assignment
    intake: Intake
    dispatcher: Dispatcher
    interpret: InterpretAgent
    reduce: ReduceAgent
    log: KafkaLog
    in_background: Callable[[Coroutine[Any, Any, None]], object]
    on_stopped: Callable[[PartitionStopped], None]
    on_failure: Callable[[BaseException], None]
    lines: EventLines = field(default_factory=lambda: EventLines(__name__))
    _waiting: dict[int, list[_Emission]] = field(default_factory=dict)

    def _take_in(self, message: Delivered) -> Callable[[], None] | None:
        is_stopped = self.assignment.is_stopped(message.partition)
        return None if is_stopped else self.intake.take(message)

    def _stop(self, stopped: PartitionStopped) -> None:
        """Tell it once: what is not acknowledged may be delivered again."""
        if not self.assignment.is_stopped(stopped.partition):
            self.on_stopped(stopped)

    async def take_utterance(self, message: Delivered) -> None:
        """Line an utterance up in its conversation."""
        damage = problem_of(message.headers, Damage)
        if damage is not None:  # nobody sent it, so it is no dead letter
            self._stop(stopped_by(message, damage))
            return
        done = self._take_in(message)
        if done is None:
            return
        tenant, _, conversation = (message.key or b"").decode(errors="replace").partition("/")
        ready = self.assignment.ready(message.partition)

        async def job() -> None:
            if ready is not None:
                await ready.wait()
            with self.log.tracing.span("interpret", message):
                await self.interpret.handle(message)
            done()

        lane = Lane(message.partition, tenant, conversation)
        self.dispatcher.submit(lane, self.interpret.kind_of(message), job)

    async def take_event(self, message: Delivered) -> None:
        """Fold an event of the log, and emit what comes of it."""
        done = self._take_in(message)
        if done is None:
            return
        try:
            with self.log.tracing.span("fold", message):
                folded = await self.reduce.fold(message)
        except PartitionStopped as stopped:
            self._stop(stopped)
            return
        except StoreError as failure:
            self.on_failure(failure)
            return
        except EpochEnded:
            return
        if folded is None:
            done()
            return
        waiting = self._waiting.setdefault(message.partition, [])
        waiting.append(_Emission(folded, message, self._delivered_at(folded), done))
        if len(waiting) == 1:
            self.in_background(self._emit(message.partition))

    async def _emit(self, partition: int) -> None:
        """Emit what was folded in one turn of the event loop: this begins in the next."""
        emissions = self._waiting.pop(partition)
        with ExitStack() as spans:
            sent = [(each, await self._begin(each, spans)) for each in emissions]
            for emission, begun in sent:
                for too_large in await self.log.sender.confirmed_all(begun):
                    await self._bury(too_large, emission.message)
                self._tell(emission)
                emission.done()

    async def _begin(self, emission: _Emission, spans: ExitStack) -> Begun:
        folded, message = emission.folded, emission.message
        spans.enter_context(self.log.tracing.span("emit", message))
        outgoing = derived_messages(
            folded.derived,
            folded.event.at,
            message.partition,
            self.settings.alert_tenants,
            self.log.tracing.carried(),
        )
        return await self.log.sender.begin_all(outgoing)

    async def _bury(self, too_large: Outgoing, source: Delivered) -> None:
        letter = Unusable(DeadLetterClass.TOO_LONG, "", f"{too_large.topic}: too long")
        derived = Delivered(*too_large[:2], source.offset, too_large.key, too_large.value)
        await self.log.write(derived, letter, 0)

    def _delivered_at(self, folded: Folded) -> float | None:
        """When the utterance of an event that was just folded came here, if it did."""
        told = folded.event.utterance
        if told.partition is None or told.offset is None:
            return None
        age = self.intake.age_s((UTTERANCES, told.partition), told.offset)
        return None if age is None else time.monotonic() - age

    def _tell(self, emission: _Emission) -> None:
        """Count an event that is done with, and write its line."""
        folded, message, delivered_at, _ = emission
        seconds = None if delivered_at is None else time.monotonic() - delivered_at
        self.log.metrics.emitted(folded, seconds)
        line = turn_line(folded, message, seconds)
        if self.settings.log_claims:
            line["claims"] = said(folded.event)
        self.lines.write("turn", **line)
