"""What a worker keeps of the log it folded: conversations in use in memory, the rest in DuckDB.

The file belongs to one thread, which runs one request after the other; the event loop never waits
for the disk. What was folded is collected here and written in batches, each with the place in the
log that it brings the store to, in one transaction. So the store may be behind what was emitted,
and never says less than the place it names; losing it loses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, final

import duckdb
import structlog

from processor.app.evicted import Evicted
from processor.app.held import HeldConversations
from processor.app.messages import Delivered
from processor.engine.conversation import Conversation
from processor.engine.snapshot import capture
from processor.evidence.projection import with_ledger
from processor.vault.sealed import is_sealed
from processor.vault.vault import Vault
from replay.batch import Batch, Position, record_hash
from replay.errors import KeysNotThereError, NotSealedError, StoreBusyError, StoreError
from replay.reading import ConversationReader
from replay.sealing import read_whole
from replay.sharing import Packed, TakenIn
from replay.store import Store
from replay.store_file import unreadable
from schemas.derived import DerivedEvent
from schemas.ids import conversation_key
from schemas.log import ConversationErased, LogEvent
from schemas.wire import canonical_bytes

_log = structlog.get_logger(__name__)

WRITE_SECONDS_MAX = 1.0
ASIDE = ".damaged"
"""What the name of a store that was set aside ends with; one is kept, for whoever asks why."""

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
    used least recently first, and read from the disk when they are needed again. `on_failure` is
    called when what waits cannot be written.
    """

    def __init__(self, path: Path, records_max: int, vault: Vault | None = None) -> None:
        self.path = path
        self._vault = vault
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="views")
        self._held = HeldConversations(records_max)
        self._loading: dict[str, asyncio.Task[Conversation]] = {}
        self._apart: dict[str, asyncio.Future[Any]] = {}
        self._evicted = Evicted()
        self._batch = Batch(vault)
        self._writer: asyncio.Task[None] | None = None
        self._damage: StoreError | None = None
        self._unwritten: StoreError | None = None
        self.on_failure: Callable[[BaseException], None] = lambda _: None

    async def __aenter__(self) -> LocalStore:
        self._store = await self._run(self._open)
        self._writer = asyncio.create_task(self._write_regularly())
        return self

    def _open(self) -> Store:
        """The store; a new one where what is there is damaged. Raises StoreError."""
        try:
            return self._new_store()
        except (StoreBusyError, KeysNotThereError):
            raise
        except NotSealedError:
            _log.warning("store_started_again", reason="what was in it was not sealed")
            self.path.unlink()
        except StoreError as damage:
            self._rename_aside(damage)
        return self._new_store()

    def _new_store(self) -> Store:
        return Store(self.path, vault=self._vault)

    async def __aexit__(self, *_: object) -> None:
        assert self._writer is not None
        self._writer.cancel()
        if self._damage is None:
            await self.flush()
            await self._run(lambda: self._store.__exit__(None, None, None))
        else:  # the next start must not find it again
            await self._run(self._leave_damaged)
        self._readers.shutdown()
        self._thread.shutdown()

    # -- damage -----------------------------------------------------------------------------------

    @property
    def is_damaged(self) -> bool:
        """Whether something was read that cannot be right."""
        return self._damage is not None

    async def set_aside(self) -> None:
        """Go on with an empty store; the one in which damage was found is renamed."""
        self._batch = Batch(self._vault)
        self.forget_conversations()
        await self._run(self._leave_damaged)
        self._damage = self._unwritten = None
        self._store = await self._run(self._new_store)

    def _leave_damaged(self) -> None:
        assert self._damage is not None
        with suppress(StoreError):
            self._store.close()
        self._rename_aside(self._damage)

    def _rename_aside(self, damage: StoreError) -> None:
        """Rename the file, in place of one that was set aside before. Raises StoreError."""
        aside = self.path.with_name(f"{self.path.name}{ASIDE}")
        try:
            self.path.replace(aside)
        except OSError:
            raise damage from None
        _log.warning("store_set_aside", to=aside.name, problem=str(damage))

    # -- conversations ----------------------------------------------------------------------------

    async def conversation(self, tenant_id: str, conversation_id: str) -> Conversation:
        """The conversation as far as this worker folded it; a new one if there is none."""
        if self._batch.is_full():
            await self.flush()
        key = conversation_key(tenant_id, conversation_id)
        await self._not_apart(key)
        if (held := self._held.get(key)) is not None:
            return held
        loading = self._loading.get(key)
        if loading is None:
            loading = asyncio.create_task(self._load(self._loading, tenant_id, conversation_id))
            self._loading[key] = loading
        conversation = await asyncio.shield(loading)
        await self._not_apart(key)  # whoever waited for the same may be changing it
        return conversation

    async def find(self, tenant_id: str, conversation_id: str) -> Conversation | None:
        """The same if anything of it is folded, else None; what is not there is not held."""
        key = conversation_key(tenant_id, conversation_id)
        await self._not_apart(key)
        is_there = (
            key in self._held
            or self._batch.has(key)
            or await self._run(lambda: self._store.may_have(tenant_id, conversation_id))
        )
        if not is_there:
            return None
        conversation = await self.conversation(tenant_id, conversation_id)
        is_closed = conversation.is_erased or self._is_closed(tenant_id, conversation_id)
        return conversation if conversation.sequence and not is_closed else None

    def _is_closed(self, tenant_id: str, conversation_id: str) -> bool:
        return self._vault is not None and self._vault.is_destroyed(tenant_id, conversation_id)

    async def apart(self, conversation: Conversation, work: Callable[[], Answer]) -> Answer:
        """Do what changes the conversation in another thread; until then nobody is given it."""
        key = conversation_key(conversation.tenant_id, conversation.conversation_id)
        working = asyncio.get_running_loop().run_in_executor(None, work)
        self._apart[key] = working
        self._held.pinned.add(key)

        def done(_: object) -> None:
            del self._apart[key]
            self._held.pinned.discard(key)

        working.add_done_callback(done)
        return await asyncio.shield(working)  # the thread goes on, whoever gives up

    async def _not_apart(self, key: str) -> None:
        while (working := self._apart.get(key)) is not None:
            await asyncio.wait([working])

    async def copied(
        self,
        tenant_id: str,
        conversation_id: str,
        turn: int | None,
        view: Callable[[Conversation], Answer],
    ) -> Answer | None:
        """What a view says of a copy of the conversation as of a turn; None if there is none."""

        def read(beside: duckdb.DuckDBPyConnection) -> Answer | None:
            reader = ConversationReader(beside, self.path, tenant_id, conversation_id)
            conversation = read_whole(self._vault, lambda: reader.at(turn))
            if conversation is None or conversation.is_erased:
                return None
            try:
                return view(conversation)
            finally:
                conversation.release()

        return await self.beside(read)

    async def beside(self, read: Callable[[duckdb.DuckDBPyConnection], Answer]) -> Answer:
        """What is read of all that was folded before, in another thread: no fold waits for it."""
        await self.flush()
        beside = await self._run(self._store.beside)  # after what was being written just now

        def work() -> Answer:
            with beside:
                return read(beside)

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
            found = await self._run(lambda: with_ledger(self._evicted.get(key)))
            if found is None:
                if self._batch.has(key):
                    await self.flush()
                found = await self._read(
                    lambda: with_ledger(self._store.conversation(tenant_id, conversation_id))
                )
        finally:
            del loading[key]
        conversation = found or Conversation.empty(tenant_id, conversation_id)
        if loading is self._loading:  # else it was forgotten meanwhile
            self._hold(conversation)
        return conversation

    def _hold(self, conversation: Conversation) -> None:
        for key, dropped in self._held.hold(conversation):
            if dropped.sequence > 0:
                self._thread.submit(self._evicted.put, key, capture(dropped))

    def held(self) -> Held:
        """What is in memory."""
        return Held(len(self._held), self._held.weight)

    def forget_conversations(self) -> None:
        """Others may go on with them: they are read again when they are needed."""
        self._held.clear()
        self._loading = {}
        self._thread.submit(self._evicted.forget)

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
        if self._vault is not None and is_sealed(message.value or b""):
            stored = message.value or b""
        self._batch.add_log(conversation, event, stored)
        for place, each in enumerate(derived):
            self._batch.add_derived(each, place)
        self._batch.add_snapshot_if_due(conversation)
        position = self._reach(message)
        self._batch.add_place(event, position)
        if isinstance(event, ConversationErased):
            self._batch.drop(event.tenant_id, event.conversation_id, position.next_offset)
        self._hold(conversation)

    def passed_over(self, message: Delivered) -> None:
        """Note that a message of the log was seen; the next write says so."""
        self._reach(message)

    def _reach(self, message: Delivered) -> Position:
        value = message.value or b""
        position = Position(message.partition, message.offset + 1, record_hash(value))
        self._batch.reach(position)
        return position

    async def derived_again(self, event: LogEvent) -> tuple[DerivedEvent, ...]:
        """What came of an event that was folded before; nothing if it was refused then."""
        await self.flush()
        derived = await self._read(lambda: self._store.derived_from(event))
        return derived or ()

    # -- writing ----------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Write what is waiting, and return when it is on the disk."""
        if self._unwritten is not None:  # what comes after it must not be written either
            raise self._unwritten
        if self._batch.is_empty():
            return
        batch, self._batch = self._batch, Batch(self._vault)
        try:
            await self._run(lambda: self._store.write(batch))
        except StoreError as unwritten:
            self._unwritten = unwritten
            raise

    async def _write_regularly(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS_MAX)
            try:
                await self.flush()
            except StoreError as failure:
                self.on_failure(failure)
                return

    async def start_again(self) -> None:
        """Throw everything away: what is here belongs to another log."""
        self._batch = Batch(self._vault)
        self.forget_conversations()

        def replace() -> Store:
            self._store.__exit__(None, None, None)
            self.path.unlink()
            return self._new_store()

        self._store = await self._run(replace)

    # -- checkpoints ------------------------------------------------------------------------------

    async def positions(self, partitions: Sequence[int]) -> dict[int, Position]:
        """Up to where the store has each partition's log, as far as it has anything of it."""
        await self.flush()
        return await self._read(lambda: self._store.positions(partitions))

    async def ahead(self, partition: int, start: int) -> dict[bytes, int]:
        """By key, up to where the conversations are here that are further than the partition."""
        found = await self._read(lambda: self._store.ahead(partition, start))
        return {conversation_key(*ids).encode(): reached for ids, reached in found.items()}

    async def take_in(self, position: Position, conversations: Iterable[TakenIn]) -> None:
        """Add what others share; it is iterated over on the store's thread."""
        await self.flush()  # what waits is from before
        await self._read(lambda: self._store.take_in(position, conversations))

    async def shareable(self, partition: int, committed: int) -> Position | None:
        """Up to where this partition may be published: what is written and committed."""
        await self.flush()
        return await self._read(lambda: self._store.shareable(partition, committed))

    async def conversation_count(self, upto: Position) -> int:
        """How many conversations of the partition have events before the position."""
        return await self._read(lambda: self._store.conversation_count(upto))

    async def packed(self, upto: Position, after: int, last: tuple[str, str]) -> list[Packed]:
        """The next few conversations after `last` with events between two offsets."""
        return await self._read(lambda: self._store.packed(upto, after, last))

    async def _read(self, work: Callable[[], Answer]) -> Answer:
        """Run what fails only on a damaged store, which is remembered. Raises StoreError."""

        def read() -> Answer:
            try:
                return work()
            except duckdb.Error as error:
                raise unreadable(self.path, error) from error

        try:
            return await self._run(read)
        except KeysNotThereError:
            raise
        except StoreError as damage:
            self._damage = damage
            raise

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
