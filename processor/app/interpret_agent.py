"""The interpret agent: from a delivered utterance to an event that the log has accepted.

One call of `handle` runs at a time for each conversation. It returns when the message is done with:
its event was folded, or the conversation had it already, or it is in the dead letters. It never
gives a message up because of somebody else's failure: endpoint and broker are waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, final

from processor.app.dispatcher import Kind
from processor.app.fetched import problem_of
from processor.app.interpret import (
    WAS_ERASED,
    AlreadyInLog,
    DeadLetterClass,
    Source,
    Unusable,
    interpret,
    needs_reading,
    turn_to_fill,
)
from processor.app.messages import Delivered
from processor.app.tenants import PLAIN, Tenants
from processor.app.utterance_reader import OUTAGE_PATIENCE_S, UtteranceReader
from processor.engine.conversation import Conversation
from processor.engine.rules_version import CURRENT_RULES
from processor.interpreter.port import Interpreted, Interpreter, Reading, Unreadable
from processor.vault.errors import KeyDestroyedError
from schemas.ids import conversation_key
from schemas.log import LogEvent
from schemas.utterance import Utterance
from schemas.wire import WireError, decode_utterance


class Log(Protocol):
    """The operations log, as one worker sees it."""

    def partition_of(self, key: bytes) -> int:
        """Where messages with the key belong."""

    async def conversation(
        self, partition: int, tenant_id: str, conversation_id: str
    ) -> Conversation:
        """The conversation as far as its log is folded. Raises KeyDestroyedError."""

    async def append(self, partition: int, event: LogEvent) -> int:
        """Append, and return the offset when the broker has it.

        Raises EventTooLarge, and KeyDestroyedError.
        """

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
    tenants: Tenants = PLAIN
    outage_patience_s: float = OUTAGE_PATIENCE_S
    on_endpoint: Callable[[bool], None] = lambda _: None

    def __post_init__(self) -> None:
        self._reader = UtteranceReader(
            self.interpreter,
            self.rules_version,
            self.tenants,
            self.outage_patience_s,
            self.on_endpoint,
        )

    def kind(self, utterance: Utterance) -> Kind:
        """What handling the utterance mostly waits for."""
        is_asked = self.interpreter is not None and needs_reading(utterance)
        return Kind.CALL if is_asked else Kind.WORK

    def kind_of(self, message: Delivered) -> Kind:
        """The same for what was delivered."""
        if self.interpreter is None:  # then it need not be read twice
            return Kind.WORK
        read = self._read(message)
        return self.kind(read) if isinstance(read, Utterance) else Kind.WORK

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

        An erased conversation takes nothing more.
        """
        try:
            return await self._append(partition, utterance, source, is_requeued=is_requeued)
        except KeyDestroyedError:
            return WAS_ERASED, 0

    async def _append(
        self, partition: int, utterance: Utterance, source: Source | None, *, is_requeued: bool
    ) -> tuple[Unusable, int] | None:
        """Append until the conversation has it.

        Another writer can take the sequence number first: then what the state takes of the same
        reading by then is appended.
        A dead letter that was requeued is read anew while its turn is missing.
        What came by another way than Kafka has no `source`.
        """
        reading: Interpreted | None = None
        appended: LogEvent | None = None
        while True:
            conversation = await self.log.conversation(
                partition, utterance.tenant_id, utterance.conversation_id
            )
            if conversation.is_erased:
                return WAS_ERASED, 0
            if appended is not None and not is_requeued and _has(conversation, appended):
                return _left_uninterpreted(conversation, utterance, reading)
            fills = turn_to_fill(conversation, utterance) if is_requeued else None
            if reading is None:
                reading = await self._reader.read(conversation, utterance, fills)
            kept = self._reader.standing(conversation, utterance, reading, fills)
            event = interpret(
                conversation, utterance, self.rules_version, kept, source, fills, self.tenants
            )
            if isinstance(event, AlreadyInLog):
                return _left_uninterpreted(conversation, utterance, reading)
            if isinstance(event, Unusable):
                return event, 0
            try:
                offset = await self.log.append(partition, event)
            except EventTooLarge as too_large:
                if not isinstance(reading, Reading):
                    return Unusable(DeadLetterClass.TOO_LONG, "", str(too_large)), 0
                reading = Unreadable(reading.provenance, f"what was read is too long: {too_large}")
                continue
            await self.log.folded(partition, offset)
            appended = event

    async def read(self, conversation: Conversation, utterance: Utterance) -> Interpreted | None:
        """What the interpreter says an utterance says; None if it need not or cannot be asked."""
        return await self._reader.read(conversation, utterance)


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
