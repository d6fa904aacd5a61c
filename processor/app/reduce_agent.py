"""The reduce agent: folds what the log says, in the order in which it says it, and nothing else.

What does not fit (a sequence number that was taken, an utterance that is there already, bytes that
are no event) is passed over, the same way by every reader, so neither a writer that should be dead
nor a message that comes twice can apply anything twice. What this version cannot understand stops
the partition: folding past it would fork the state.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, final

import structlog

from processor.app.fetched import BatchProblem, problem_of
from processor.app.messages import Delivered
from processor.app.progress import FoldProgress
from processor.engine.conversation import Conversation
from processor.evidence.fold import RefusalReason
from processor.evidence.fold import Refused as FoldRefused
from processor.render.reduce import reduce
from processor.vault.errors import KeysAwayError
from processor.vault.sealed import is_sealed
from replay.archive_batch import conversation_of
from schemas.derived import DerivedEvent
from schemas.ids import conversation_key
from schemas.log import ConversationErased, LogEvent
from schemas.topics import LOG_TYPES
from schemas.wire import WireError, decode_json, decode_log_event

HEAVY_BYTES = 16_384
HEAVY_RECORDS = 20_000

Answer = TypeVar("Answer")

_log = structlog.get_logger(__name__)

_TYPE = re.compile(r"^(standfast\.[a-z_]+)\.v([0-9]+)$")
_KNOWN = {match[1]: int(match[2]) for match in map(_TYPE.match, LOG_TYPES) if match is not None}


class PartitionStopped(Exception):  # noqa: N818 - it says what happened
    """The log holds what this version cannot read; `str(error)` says what and where."""

    def __init__(self, problem: str, partition: int) -> None:
        super().__init__(problem)
        self.partition = partition


class LogKeys(Protocol):
    """The data keys of conversations, where the log is sealed. What awaits raises EpochEnded."""

    def is_closed(self, tenant_id: str, conversation_id: str) -> bool:
        """Whether the conversation is erased, as far as is known."""

    async def ready(self, partition: int, tenant_id: str, conversation_id: str) -> bool:
        """Have a data key of the conversation at hand, however long it takes; False if erased."""

    async def opened(
        self, message: Delivered, tenant_id: str, conversation_id: str
    ) -> bytes | None:
        """The event in a message, however long it takes; None if it is passed over."""


class Keeper(Protocol):
    """Where a worker keeps what it folded."""

    async def conversation(self, tenant_id: str, conversation_id: str) -> Conversation:
        """The conversation as far as this worker folded it; a new one if there is none."""

    async def apart(self, conversation: Conversation, work: Callable[[], Answer]) -> Answer:
        """Do what changes the conversation in another thread; until then nobody is given it."""

    def keep(
        self,
        conversation: Conversation,
        event: LogEvent,
        derived: tuple[DerivedEvent, ...],
        message: Delivered,
    ) -> None:
        """Keep an event that was just folded; it is written soon."""

    def passed_over(self, message: Delivered) -> None:
        """Note that a message of the log was seen and not folded."""

    async def derived_again(self, event: LogEvent) -> tuple[DerivedEvent, ...]:
        """What came of an event that was folded before; nothing if it was refused then."""


@final
class Folded(NamedTuple):
    """An event of the log and what is emitted for it."""

    event: LogEvent
    derived: tuple[DerivedEvent, ...]
    is_again: bool = False
    """It was folded before, and may have been emitted."""


@final
@dataclass
class ReduceAgent:
    """Folds delivered messages of the operations topic.

    `on_refused` is told what did not fit; `tell` hears of each event that is folded anew.
    """

    keeper: Keeper
    progress: FoldProgress
    on_refused: Callable[[RefusalReason], None] = lambda _: None
    tell: Callable[[Folded], None] = lambda _: None
    appended: Callable[[bytes], LogEvent | None] = lambda _: None
    """What this worker appended with these bytes: reading them again would come to the same."""
    keys: LogKeys | None = None

    async def fold(self, message: Delivered) -> Folded | None:
        """Fold a message of the log; None if it is passed over.

        Raises PartitionStopped, and EpochEnded.
        """
        event = self.appended(message.value or b"")
        if event is None or not _is_key_of(message, event):
            event = await self._read(message)
        if self.keys is not None and event is not None and not _is_end(event):
            ids = (event.tenant_id, event.conversation_id)
            if not await self.keys.ready(message.partition, *ids):
                event = None  # erased: what is left of it is passed over, by who can read it too
        folded = None if event is None else await self._fold(event, message)
        if folded is None and not self._is_again(message):
            self.keeper.passed_over(message)
        self.progress.advance(message.partition, message.offset + 1)
        return folded

    async def _read(self, message: Delivered) -> LogEvent | None:
        if not is_sealed(message.value or b""):
            return read_log_event(message)
        if self.keys is None:
            raise sealed_without_keys(message)
        tenant_id, conversation_id = conversation_of(message.key)
        if tenant_id is None or conversation_id is None:
            _log.warning("log_key_skipped", **_place(message))
            return None
        opened = await self.keys.opened(message, tenant_id, conversation_id)
        return None if opened is None else read_log_event(message._replace(value=opened))

    def _is_closed(self, event: LogEvent) -> bool:
        """Whether the conversation was erased while something was waited for."""
        return (
            self.keys is not None
            and not _is_end(event)
            and self.keys.is_closed(event.tenant_id, event.conversation_id)
        )

    def _is_again(self, message: Delivered) -> bool:
        return message.offset < self.progress.next_offset(message.partition)

    async def _fold(self, event: LogEvent, message: Delivered) -> Folded | None:
        epoch = self.progress.epoch
        if self._is_again(message):
            again = await self.keeper.derived_again(event)
            self.progress.check(epoch)
            return Folded(event, again, is_again=True)
        conversation = await self.keeper.conversation(event.tenant_id, event.conversation_id)
        self.progress.check(epoch)
        if self._is_closed(event):
            return None
        if is_heavy(conversation, message):
            derived = await self.keeper.apart(conversation, lambda: reduce(conversation, event))
            self.progress.check(epoch)
        else:
            derived = reduce(conversation, event)
        if isinstance(derived, FoldRefused):
            if derived.reason is RefusalReason.UNKNOWN_RULES:
                what = f"rules version {event.rules_version}"
                raise PartitionStopped(newer_at(message, what), message.partition)
            _log.info("event_refused", **_place(message), reason=derived.reason.value)
            self.on_refused(derived.reason)
            return None
        self.keeper.keep(conversation, event, derived, message)
        folded = Folded(event, derived)
        self.tell(folded)
        return folded


def _named(message: Delivered) -> str:
    return f"{message.topic}/{message.partition} at {message.offset}"


def sealed_without_keys(message: Delivered) -> PartitionStopped:
    """Why a sealed log is not folded by who has no key file."""
    return PartitionStopped(f"{_named(message)} is sealed; name the key file", message.partition)


def sealed_without_its_key(message: Delivered, missing: KeysAwayError) -> PartitionStopped:
    """Why an event is not folded whose data key nobody has.

    To pass over it would fork the state as soon as somebody has the key.
    """
    return PartitionStopped(
        f"{_named(message)} is sealed: {missing}; "
        "bring it back into the topic keys, or erase the conversation",
        message.partition,
    )


def _is_end(event: LogEvent) -> bool:
    return isinstance(event, ConversationErased)


def is_heavy(conversation: Conversation, message: Delivered) -> bool:
    """Whether folding may take so long that the event loop must not wait for it.

    Within their bounds ten thousand atoms of one key take ten seconds, formulas seconds, and a
    withdrawal as long as there are records to bring down.
    """
    state = conversation.state
    return (
        len(message.value or b"") > HEAVY_BYTES
        or len(state.records) > HEAVY_RECORDS
        or state.model.spent > 0
    )


def read_log_event(message: Delivered) -> LogEvent | None:
    """The event of a message of the log, or None if it is none. Raises PartitionStopped."""
    if message.value is None:
        return None
    unread = problem_of(message.headers, BatchProblem)
    if unread is not None:
        raise stopped_by(message, unread)
    try:
        event = decode_log_event(message.value)
    except WireError as invalid:
        newer = _newer_type(message.value)
        if newer is not None:
            raise PartitionStopped(newer_at(message, newer), message.partition) from invalid
        _log.warning("log_bytes_skipped", **_place(message), problem=str(invalid))
        return None
    if not _is_key_of(message, event):
        _log.warning("log_key_skipped", **_place(message))
        return None
    return event


def _is_key_of(message: Delivered, event: LogEvent) -> bool:
    return message.key == conversation_key(event.tenant_id, event.conversation_id).encode()


def _newer_type(value: bytes) -> str | None:
    """The type of an event that a later version of this program wrote."""
    try:
        document = decode_json(value)
    except WireError:
        return None
    type_ = document.get("type") if isinstance(document, dict) else None
    match = _TYPE.match(type_) if isinstance(type_, str) else None
    if match is None:
        return None
    known = _KNOWN.get(match[1])
    return type_ if isinstance(type_, str) and (known is None or int(match[2]) > known) else None


def newer_at(message: Delivered, what: str) -> str:
    """Why a partition stops, and where."""
    return f"{_named(message)} holds {what}, which is newer"


def stopped_by(message: Delivered, unread: str) -> PartitionStopped:
    """A batch that cannot be read stops its partition; what is wrong with it says where it is."""
    return PartitionStopped(f"{message.topic}/{message.partition}: {unread}", message.partition)


def _place(message: Delivered) -> dict[str, int]:
    return {"partition": message.partition, "offset": message.offset}
