"""The whole pipeline in one process: lines in, derived events out, everything kept in a store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple, final

from processor.app.dead_letters import DeadLetter
from processor.app.interpret import AlreadyInLog, DeadLetterClass, Unusable, interpret
from processor.app.lines import Line, read_lines
from processor.app.reduce import reduce
from processor.engine.conversation import Conversation
from processor.engine.errors import BrokenInvariantError
from processor.engine.fold import Refused
from processor.engine.rules_version import CURRENT_RULES
from replay.store import Store
from schemas.contract import UTTERANCE_BYTES_MAX
from schemas.derived import DerivedEvent
from schemas.log import LogEvent
from schemas.utterance import Utterance
from schemas.wire import WireError, decode_utterance

CONVERSATIONS_MAX = 1_000
RECORDS_MAX = 500_000


@final
class Processed(NamedTuple):
    """An utterance that was appended to its conversation's log, and what came of it."""

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
    """Interprets and reduces line by line.

    Memory is bounded: conversations that were not used for longest are dropped when there are more
    than `conversations_max`, or more records than `records_max` among all, and read again from the
    store when they are needed.
    """

    store: Store
    rules_version: int = CURRENT_RULES
    conversations_max: int = CONVERSATIONS_MAX
    records_max: int = RECORDS_MAX

    def __post_init__(self) -> None:
        self._live: OrderedDict[tuple[str, str], Conversation] = OrderedDict()
        self._records = 0

    def run(self, stream: BinaryIO) -> Iterator[Processed | Repeated | DeadLetter]:
        """Process every line of a stream of any length, in order."""
        for line in read_lines(stream):
            yield self.process(line)
        self.store.flush()

    def process(self, line: Line) -> Processed | Repeated | DeadLetter:
        """Process one line; a bad one is handed back as a dead letter and changes nothing."""
        if line.content is None:
            problem = f"{line.size:,} bytes; a line may have {UTTERANCE_BYTES_MAX:,}"
            return DeadLetter(line, DeadLetterClass.TOO_LONG, "", problem)
        try:
            utterance = decode_utterance(line.content)
        except WireError as invalid:
            return DeadLetter(line, DeadLetterClass.INVALID, invalid.place, invalid.problem)
        conversation = self._conversation(utterance.tenant_id, utterance.conversation_id)
        event = interpret(conversation, utterance, self.rules_version)
        if isinstance(event, AlreadyInLog):
            return Repeated(utterance)
        if isinstance(event, Unusable):
            return DeadLetter(line, event.dead_letter_class, event.place, event.problem)
        before = len(conversation.state.records)
        derived = reduce(conversation, event)
        if isinstance(derived, Refused):
            raise BrokenInvariantError(f"the next event of a conversation: {derived.reason}")
        self._records += len(conversation.state.records) - before
        self.store.append(conversation, event, derived)
        return Processed(utterance, conversation, event, derived)

    def _conversation(self, tenant_id: str, conversation_id: str) -> Conversation:
        key = (tenant_id, conversation_id)
        conversation = self._live.get(key)
        if conversation is not None:
            self._live.move_to_end(key)
            return conversation
        conversation = self.store.conversation(tenant_id, conversation_id)
        if conversation is None:
            conversation = Conversation.empty(tenant_id, conversation_id)
        self._live[key] = conversation
        self._records += len(conversation.state.records)
        self._drop_unused()
        return conversation

    def _drop_unused(self) -> None:
        """Keep within the bounds, but always the conversation that is being worked on."""
        while len(self._live) > 1 and (
            len(self._live) > self.conversations_max or self._records > self.records_max
        ):
            _, dropped = self._live.popitem(last=False)
            self._records -= len(dropped.state.records)
