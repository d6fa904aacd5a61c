"""The whole pipeline in one process: lines in, derived events out, everything kept in a store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple, final

from processor.app.dead_letters import DeadLetter
from processor.app.interpret import (
    WAS_ERASED,
    AlreadyInLog,
    DeadLetterClass,
    Unusable,
    interpret,
    needs_reading,
)
from processor.app.lines import Line, read_lines
from processor.app.live import LiveConversations
from processor.app.tenants import PLAIN, Tenants
from processor.engine.conversation import Conversation
from processor.engine.errors import BrokenInvariantError
from processor.engine.rules_version import CURRENT_RULES
from processor.evidence.fold import Refused
from processor.interpreter.port import Interpreted
from processor.render.reduce import reduce
from replay.store import Store
from schemas.contract import UTTERANCE_BYTES_MAX
from schemas.derived import DerivedEvent
from schemas.log import LogEvent
from schemas.utterance import Utterance
from schemas.wire import WireError, decode_utterance

COMMIT_SECONDS_MAX = 0.5
"""How long what was handed on may wait to be committed, but for the line that is worked on."""
RECORDS_MAX = 250_000
"""About 250 MB, and half a gigabyte for the process; see `LiveConversations`."""


@final
class Processed(NamedTuple):
    """An utterance that was appended to its conversation's log, and what came of it.

    The conversation is whole until the next line is processed; then it may have left memory.
    """

    utterance: Utterance
    conversation: Conversation
    event: LogEvent
    derived: tuple[DerivedEvent, ...]


@final
class Repeated(NamedTuple):
    """An utterance that the conversation has already; nothing was done."""

    utterance: Utterance


@final
@dataclass
class OneProcess:
    """Interprets and reduces line by line; `read` reads what only a model can.

    Memory is bounded: when all conversations together weigh more than `records_max` records, those
    that were not used for longest leave it until they are needed; see `LiveConversations`.
    What takes long and may be left half done happens inside `interruptible()`.
    """

    store: Store
    rules_version: int = CURRENT_RULES
    tenants: Tenants = PLAIN
    records_max: int = RECORDS_MAX
    clock: Callable[[], float] = time.monotonic
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext
    read: Callable[[Conversation, Utterance], Interpreted | None] | None = None

    def __post_init__(self) -> None:
        self._live = LiveConversations(self.store, self.records_max)
        self._uncommitted_since: float | None = None

    def run(self, stream: BinaryIO) -> Iterator[Processed | Repeated | DeadLetter]:
        """Process every line of a stream of any length, in order.

        A result is committed only after the next one was asked for, so whoever has handed it on by
        then never finds in the store what was not handed on.
        """
        for line in read_lines(stream):
            yield self.process(line)
            self.commit_when_due()
        self.commit()

    def commit_when_due(self) -> None:
        """Commit if something has waited for long enough."""
        since = self._uncommitted_since
        if since is not None and self.clock() - since >= COMMIT_SECONDS_MAX:
            self.commit()

    def commit(self) -> None:
        """Commit everything that was processed."""
        self.store.flush()
        self._uncommitted_since = None

    def process(self, line: Line) -> Processed | Repeated | DeadLetter:
        """Process one line; a bad one is handed back as a dead letter and changes nothing."""
        if line.content is None:
            problem = f"{line.size:,} bytes; a line may have {UTTERANCE_BYTES_MAX:,}"
            return DeadLetter(line, DeadLetterClass.TOO_LONG, "", problem)
        try:
            utterance = decode_utterance(line.content)
        except WireError as invalid:
            return DeadLetter(line, DeadLetterClass.INVALID, invalid.place, invalid.problem)
        done = self.append(utterance)
        match done:
            case AlreadyInLog():
                return Repeated(utterance)
            case Unusable():
                return DeadLetter(line, done.dead_letter_class, done.place, done.problem)
            case Processed():
                return done

    def append(self, utterance: Utterance) -> Processed | AlreadyInLog | Unusable:
        """Have an utterance read, and append what it says to its conversation's log."""
        if self.store.is_closed(utterance.tenant_id, utterance.conversation_id):
            return WAS_ERASED
        conversation = self._live.get(utterance.tenant_id, utterance.conversation_id)
        reading: Interpreted | None = None
        if self.read is not None and needs_reading(utterance):
            self.commit()  # a model takes its time
            with self.interruptible():
                reading = self.read(conversation, utterance)
        event = interpret(
            conversation, utterance, self.rules_version, reading, tenants=self.tenants
        )
        if isinstance(event, AlreadyInLog | Unusable):
            return event
        with self.interruptible():
            derived = reduce(conversation, event)
        if isinstance(derived, Refused):
            raise BrokenInvariantError(f"the next event of a conversation: {derived.reason}")
        self._live.hold(conversation)
        self.store.append(conversation, event, derived)
        if self._uncommitted_since is None:
            self._uncommitted_since = self.clock()
        return Processed(utterance, conversation, event, derived)
