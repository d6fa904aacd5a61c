"""The interpret agent: from a delivered utterance to an event that the log has accepted.

One call of `handle` runs at a time for each conversation. It returns when the message is done with:
its event was folded, or the conversation had it already, or it is in the dead letters. It never
gives a message up because of somebody else's failure: endpoint and broker are waited for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, final

from processor.app.fetched import problem_of
from processor.app.interpret import (
    AlreadyInLog,
    DeadLetterClass,
    Source,
    Unusable,
    interpret,
    needs_reading,
    turn_to_fill,
)
from processor.app.messages import Delivered
from processor.app.read_claims import read_claims
from processor.engine.conversation import Conversation
from processor.engine.rules_version import CURRENT_RULES
from processor.engine.turn import dry_run
from processor.interpreter.port import (
    EndpointUnavailable,
    Interpreted,
    Interpreter,
    Reading,
    Refused,
    Unreadable,
)
from schemas.ids import conversation_key
from schemas.log import Interpretation, LogEvent, OperationsAppended
from schemas.utterance import Utterance
from schemas.wire import WireError, decode_utterance

REPROMPTS_MAX = 2
PAUSE_FIRST_S = 0.2
PAUSE_MAX_S = 15.0


class Log(Protocol):
    """The operations log, as one worker sees it."""

    def partition_of(self, key: bytes) -> int:
        """Where messages with the key belong."""

    async def conversation(
        self, partition: int, tenant_id: str, conversation_id: str
    ) -> Conversation:
        """The conversation as far as its log is folded."""

    async def append(self, partition: int, event: LogEvent) -> int:
        """Append, and return the offset when the broker has it. Raises EventTooLarge."""

    async def folded(self, partition: int, offset: int) -> None:
        """Return when the log is folded beyond the offset, whether or not the event fitted."""


class DeadLetters(Protocol):
    """Where goes what cannot be handled."""

    async def write(self, message: Delivered, letter: Unusable, attempts: int) -> None:
        """Returns when the broker has it, and keeps trying until then."""


class EventTooLarge(Exception):  # noqa: N818 - it says what is wrong
    """The broker would not take an event of that size."""


@final
@dataclass
class InterpretAgent:
    """Handles utterances; `interpreter` None reads nothing but what brings its operations.

    While the endpoint is down calls wait, for at most `outage_patience_s`; `on_endpoint` is told
    whether it answers.
    """

    log: Log
    dead_letters: DeadLetters
    interpreter: Interpreter | None = None
    rules_version: int = CURRENT_RULES
    outage_patience_s: float = 3_600.0
    on_endpoint: Callable[[bool], None] = lambda _: None

    async def handle(self, message: Delivered) -> None:
        """Do everything that a delivered utterance needs."""
        read = self._read(message)
        if isinstance(read, Unusable):
            await self.dead_letters.write(message, read, 0)
            return
        source = Source(message.topic, message.partition, message.offset)
        letter = await self.append(message.partition, read, source, is_requeued=message.is_requeued)
        if letter is not None:
            unusable, attempts = letter
            await self.dead_letters.write(message, unusable, attempts)

    def _read(self, message: Delivered) -> Utterance | Unusable:
        problem = problem_of(message.headers)
        if problem is not None:
            return Unusable(DeadLetterClass.INVALID, "", problem)
        if message.value is None:
            return Unusable(DeadLetterClass.INVALID, "", "a message without a value")
        try:
            utterance = decode_utterance(message.value)
        except WireError as invalid:
            return Unusable(DeadLetterClass.INVALID, invalid.place, invalid.problem)
        key = conversation_key(utterance.tenant_id, utterance.conversation_id).encode()
        if message.key != key:
            return Unusable(DeadLetterClass.WRONG_KEY, "", "the key is not tenant/conversation")
        if self.log.partition_of(key) != message.partition:
            problem = f"it belongs on partition {self.log.partition_of(key)}"
            return Unusable(DeadLetterClass.WRONG_PARTITION, "", problem)
        return utterance

    async def append(
        self,
        partition: int,
        utterance: Utterance,
        source: Source | None = None,
        *,
        is_requeued: bool = False,
    ) -> tuple[Unusable, int] | None:
        """Append until the conversation has it; what to write as a dead letter, if anything.

        Another writer can take the sequence number first: then the same reading is appended again.
        A dead letter that was requeued is read anew while its turn is missing.
        What came by another way than Kafka has no `source`.
        """
        reading: Interpreted | None = None
        appended: LogEvent | None = None
        while True:
            conversation = await self.log.conversation(
                partition, utterance.tenant_id, utterance.conversation_id
            )
            if appended is not None and not is_requeued and _has(conversation, appended):
                return _left_uninterpreted(conversation, utterance, reading)
            fills = turn_to_fill(conversation, utterance) if is_requeued else None
            if reading is None:
                reading = await self.read(conversation, utterance, fills)
            event = interpret(conversation, utterance, self.rules_version, reading, source, fills)
            if isinstance(event, AlreadyInLog):
                return _left_uninterpreted(conversation, utterance, reading)
            if isinstance(event, Unusable):
                return event, 0
            try:
                offset = await self.log.append(partition, event)
            except EventTooLarge as too_large:
                return Unusable(DeadLetterClass.TOO_LONG, "", str(too_large)), 0
            await self.log.folded(partition, offset)
            appended = event

    async def read(
        self, conversation: Conversation, utterance: Utterance, fills: int | None = None
    ) -> Interpreted | None:
        """What the interpreter says an utterance says; None if it need not or cannot be asked."""
        if not self._must_ask(conversation, utterance, fills):
            return None
        if utterance.claims is None:
            return await self._reading(conversation, utterance, fills)
        return await read_claims(utterance, lambda each: self._reading(conversation, each, None))

    def _must_ask(
        self, conversation: Conversation, utterance: Utterance, fills: int | None
    ) -> bool:
        return (
            self.interpreter is not None
            and needs_reading(utterance)
            and (utterance.utterance_id not in conversation.utterances or fills is not None)
        )

    async def _reading(
        self, conversation: Conversation, utterance: Utterance, fills: int | None
    ) -> Interpreted:
        """Ask the interpreter, again with the reasons where the state refuses some of it."""
        refused: Refused | None = None
        for attempt in range(1 + REPROMPTS_MAX):
            interpreted = await self._answer(conversation, utterance, refused)
            if isinstance(interpreted, Unreadable) or attempt == REPROMPTS_MAX:
                return interpreted
            refused = self._refused(conversation, utterance, interpreted, fills)
            if refused is None:
                return interpreted
        raise AssertionError("the last attempt returns")

    def _refused(
        self,
        conversation: Conversation,
        utterance: Utterance,
        reading: Reading,
        fills: int | None,
    ) -> Refused | None:
        """What the present state would refuse of the reading."""
        event = interpret(conversation, utterance, self.rules_version, reading, None, fills)
        if not isinstance(event, OperationsAppended):
            return None
        outcome = dry_run(
            conversation.state, event.turn, event.speaker, event.audience, event.operations
        )
        return Refused(reading, outcome.rejections) if outcome.rejections else None

    async def _answer(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """Wait for the endpoint as long as patience lasts, with growing pauses and jitter."""
        assert self.interpreter is not None
        waited_s, pause_s = 0.0, PAUSE_FIRST_S
        while True:
            try:
                answer = await self.interpreter.interpret(conversation, utterance, refused)
            except EndpointUnavailable as unavailable:
                self.on_endpoint(False)
                if waited_s >= self.outage_patience_s:
                    return Unreadable(Interpretation(interpreter="none"), str(unavailable))
                wait_s = max(pause_s, unavailable.retry_after_s or 0.0) * random.uniform(0.5, 1.5)
                await asyncio.sleep(wait_s)
                waited_s += wait_s
                pause_s = min(2 * pause_s, PAUSE_MAX_S)
            else:
                self.on_endpoint(True)
                return answer


def _has(conversation: Conversation, event: LogEvent) -> bool:
    """Whether the utterance of an event is there, by this event or another; as `interpret` asks."""
    known = conversation.utterances.get(event.utterance.id)
    return known is not None and known.hex() == event.utterance.digest


def _left_uninterpreted(
    conversation: Conversation, utterance: Utterance, reading: Interpreted | None
) -> tuple[Unusable, int] | None:
    """The letter for an utterance whose turn is missing; asked also when it comes again."""
    if utterance.utterance_id not in conversation.missing.values():
        return None
    reason, attempts = "its turn could not be interpreted", 0
    if isinstance(reading, Unreadable):
        reason, attempts = reading.reason, reading.provenance.attempts
    return Unusable(DeadLetterClass.NOT_INTERPRETED, "", reason), attempts
