"""What a worker keeps of the log it folded: conversations in use in memory, the rest in DuckDB.

The file belongs to one thread, which runs one request after the other; the event loop never waits
for the disk. What was folded is collected here and written in batches, each with the place in the
log that it brings the store to, in one transaction. So the store may be behind what was emitted,
and never says less than the place it names; losing it loses nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar, final

from processor.app.messages import Delivered
from processor.engine.conversation import Conversation
from replay.batch import Batch, Position, record_hash
from replay.reading import ConversationReader
from replay.snapshots import is_snapshot_due
from replay.store import Store
from schemas.derived import DerivedEvent
from schemas.ids import conversation_key
from schemas.log import LogEvent
from schemas.wire import canonical_bytes

CONVERSATION_WEIGHT = 8
"""What a conversation costs beside its records, in records."""
WRITE_SECONDS_MAX = 1.0

Answer = TypeVar("Answer")


@final
class Held(NamedTuple):
    """How many conversations are in memory, and what they weigh, in records."""

    conversations: int
    weight: int


@final
class LocalStore:
    """Implements the keeper of the reduce agent; use it as `async with LocalStore(...)`.

    Conversations that weigh more than `records_max` records together are dropped from memory, those
    used least recently first, and read from the file when they are needed again.
    """

    def __init__(self, path: Path, records_max: int) -> None:
        self._path = path
        self._records_max = records_max
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="views")
        self._live: OrderedDict[str, tuple[Conversation, int]] = OrderedDict()
        self._weight = 0
        self._loading: dict[str, asyncio.Task[Conversation]] = {}
        self._batch = Batch()
        self._partition_of: dict[str, int] = {}
        self._writer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> LocalStore:
        self._store = await self._run(lambda: Store(self._path))
        self._writer = asyncio.create_task(self._write_regularly())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._writer is not None
        self._writer.cancel()
        await self.flush()
        await self._run(lambda: self._store.__exit__(None, None, None))
        self._readers.shutdown()
        self._thread.shutdown()

    # -- conversations ----------------------------------------------------------------------------

    async def conversation(self, tenant_id: str, conversation_id: str) -> Conversation:
        """The conversation as far as this worker folded it; a new one if there is none."""
        key = conversation_key(tenant_id, conversation_id)
        held = self._live.get(key)
        if held is not None:
            self._live.move_to_end(key)
            return held[0]
        loading = self._loading.get(key)
        if loading is None:
            loading = asyncio.create_task(self._load(self._loading, tenant_id, conversation_id))
            self._loading[key] = loading
        return await asyncio.shield(loading)

    async def find(self, tenant_id: str, conversation_id: str) -> Conversation | None:
        """The same if anything of it is folded, else None; what is not there is not held."""
        key = conversation_key(tenant_id, conversation_id)
        is_there = (
            key in self._live
            or self._batch.has(key)
            or await self._run(lambda: self._store.may_have(tenant_id, conversation_id))
        )
        if not is_there:
            return None
        conversation = await self.conversation(tenant_id, conversation_id)
        return conversation if conversation.sequence else None

    async def copied(
        self,
        tenant_id: str,
        conversation_id: str,
        turn: int | None,
        view: Callable[[Conversation], Answer],
    ) -> Answer | None:
        """What a view says of a conversation of its own, read as of a turn; None if there is none.

        It is read and viewed in another thread than the store's, so that the fold waits for
        neither.
        """
        await self.flush()
        beside = await self._run(self._store.beside)  # after what was being written just now

        def work() -> Answer | None:
            with beside:
                reader = ConversationReader(beside, self._path, tenant_id, conversation_id)
                conversation = reader.at(turn)
            if conversation is None:
                return None
            try:
                return view(conversation)
            finally:
                conversation.release()

        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    async def recorded(
        self, tenant_id: str, conversation_id: str, utterance_id: str
    ) -> tuple[LogEvent, tuple[DerivedEvent, ...]] | None:
        """The event that an utterance became, and what came of it."""
        await self.flush()
        return await self._run(
            lambda: self._store.recorded(tenant_id, conversation_id, utterance_id)
        )

    def is_open(self) -> bool:
        """Whether it can be read and is written to."""
        return self._writer is not None and not self._writer.done()

    async def _load(
        self, loading: dict[str, asyncio.Task[Conversation]], tenant_id: str, conversation_id: str
    ) -> Conversation:
        key = conversation_key(tenant_id, conversation_id)
        try:
            if self._batch.has(key):
                await self.flush()
            found = await self._run(lambda: self._store.conversation(tenant_id, conversation_id))
        finally:
            del loading[key]
        conversation = found or Conversation.empty(tenant_id, conversation_id)
        if loading is self._loading:  # else it was forgotten meanwhile
            self._hold(conversation)
        return conversation

    def _hold(self, conversation: Conversation) -> None:
        key = conversation_key(conversation.tenant_id, conversation.conversation_id)
        _, before = self._live.pop(key, (conversation, 0))
        weight = CONVERSATION_WEIGHT + len(conversation.state.records)
        self._live[key] = (conversation, weight)
        self._weight += weight - before
        while self._weight > self._records_max and len(self._live) > 1:
            _, (_, lost) = self._live.popitem(last=False)
            self._weight -= lost

    def held(self) -> Held:
        """What is in memory."""
        return Held(len(self._live), self._weight)

    def forget_conversations(self) -> None:
        """Others may go on with them: they are read again when they are needed."""
        self._live.clear()
        self._weight = 0
        self._loading = {}

    # -- keeping ----------------------------------------------------------------------------------

    def keep(
        self,
        conversation: Conversation,
        event: LogEvent,
        derived: tuple[DerivedEvent, ...],
        message: Delivered,
    ) -> None:
        """Keep an event that was just folded; it is written soon."""
        stored = canonical_bytes(event)
        self._batch.add_log(conversation, event, stored)
        for place, each in enumerate(derived):
            self._batch.add_derived(each, place)
        if is_snapshot_due(conversation):
            self._batch.add_snapshot(conversation)
        self.passed_over(message)
        self._hold(conversation)

    def passed_over(self, message: Delivered) -> None:
        """Note that a message of the log was seen; the next write says so."""
        value = message.value or b""
        self._batch.reach(Position(message.partition, message.offset + 1, record_hash(value)))

    async def derived_again(self, event: LogEvent) -> tuple[DerivedEvent, ...]:
        """What came of an event that was folded before; nothing if it was refused then."""
        await self.flush()
        derived = await self._run(lambda: self._store.derived_from(event))
        return derived or ()

    # -- writing ----------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Write what is waiting, and return when it is on the disk."""
        if self._batch.is_empty():
            return
        batch, self._batch = self._batch, Batch()
        await self._run(lambda: self._store.write(batch))

    async def _write_regularly(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS_MAX)
            await self.flush()

    async def start_again(self) -> None:
        """Throw everything away: what is here belongs to another log."""
        self._batch = Batch()
        self.forget_conversations()

        def replace() -> Store:
            self._store.__exit__(None, None, None)
            self._path.unlink()
            return Store(self._path)

        self._store = await self._run(replace)

    async def positions(self, partitions: Sequence[int]) -> dict[int, Position]:
        """Up to where the store has each partition's log, as far as it has anything of it."""
        await self.flush()
        return await self._run(lambda: self._store.positions(partitions))

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
