"""The data keys of a worker's conversations: read from the topic `keys`, and made where missing.

A data key is in the topic before anything is sealed with it, and whoever seals or opens has read
the topic to its end if need be. So a key that is missing is one that was destroyed, and the topic
says so, or one that cannot be had now, and then the worker waits: nothing is given up for a key
file that is away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypeVar, final

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from processor.app.messages import KEYS, Delivered, key_message
from processor.app.progress import EpochEnded
from processor.app.recovery import log_range, log_reader, waiting_out
from processor.app.sender import Sender
from processor.vault.errors import (
    KeyDestroyedError,
    KeysAwayError,
    SealedBytesError,
    VaultError,
)
from processor.vault.held_keys import HeldKeys
from processor.vault.sealed import Kind, key_id_of
from processor.vault.tenant_keys import TenantKeys
from processor.vault.vault import Vault
from schemas.ids import conversation_key
from schemas.keys import TICK_KEY, DestroyedKey, KeyRecord, decode_key_record
from schemas.wire import WireError

_log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
"""How often the topic is looked at, and a key asked for that is away."""

Answer = TypeVar("Answer")


@final
class WorkerKeys:
    """Follows the partitions it was told about last; `on_record` is told what it reads."""

    def __init__(
        self,
        tenant_keys: TenantKeys,
        connection: Mapping[str, Any],
        sender: Sender,
        on_record: Callable[[KeyRecord], None] = lambda _: None,
    ) -> None:
        self._held = HeldKeys()
        self._on_record = on_record
        self.vault = Vault(tenant_keys, self._held)
        self._connection = connection
        self._sender = sender
        self._stack = AsyncExitStack()
        self._reader: AIOKafkaConsumer | None = None
        self._next: dict[int, int] = {}
        self._reading = asyncio.Lock()
        self._following: asyncio.Task[None] | None = None
        self._waiting: set[str] = set()

    @property
    def are_there(self) -> bool:
        """Whether nothing waits for a key that is away."""
        return not self._waiting

    async def begin(self, partitions: list[int]) -> None:
        """These partitions are ours; returns when their keys are read."""
        await self.end()
        reader = await self._stack.enter_async_context(
            log_reader(self._connection, partitions, KEYS)
        )
        firsts = await waiting_out(
            lambda: reader.beginning_offsets([TopicPartition(KEYS, each) for each in partitions])
        )
        self._next = {place.partition: first for place, first in firsts.items()}
        self._reader = reader
        for partition in partitions:
            await self._catch_up(partition)
        self._following = asyncio.create_task(self._follow(partitions))

    async def end(self) -> None:
        """No partition is ours any more; who waits hears EpochEnded."""
        self._reader = None
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
            self._following = None
        await self._stack.aclose()
        self._held.clear()
        self._waiting.clear()

    async def _follow(self, partitions: list[int]) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                for partition in partitions:
                    await self._catch_up(partition)
            except (KafkaError, VaultError) as failure:  # who needs a key hears of it too
                _log.warning("keys_not_read", problem=str(failure))

    async def _catch_up(self, partition: int) -> None:
        """Read what the topic has by now. Raises EpochEnded."""
        async with self._reading:
            reader = self._reader
            if reader is None:
                raise EpochEnded
            place = TopicPartition(KEYS, partition)
            end = (await waiting_out(lambda: reader.end_offsets([place])))[place]
            start = self._next[partition]
            async for message in log_range(reader, partition, start, end, KEYS):
                self._take(message)
            self._next[partition] = max(start, end)

    def _take(self, message: Delivered) -> None:
        if message.value is None or message.key == TICK_KEY:
            return
        try:
            record = decode_key_record(message.value)
        except WireError as invalid:
            place = {"partition": message.partition, "offset": message.offset}
            _log.warning("key_record_skipped", **place, problem=str(invalid))
            return
        self._on_record(record)
        self._held.take(record)
        if isinstance(record, DestroyedKey) and self._following is not None:
            owner = conversation_key(record.tenant_id, record.conversation_id)
            _log.info("keys_destroyed", conversation=owner)

    # -- what the agents ask ----------------------------------------------------------------------

    def is_closed(self, tenant_id: str, conversation_id: str) -> bool:
        """Whether the conversation is erased, as far as the topic was read."""
        return self.vault.is_destroyed(tenant_id, conversation_id)

    async def is_known(self, partition: int, tenant_id: str, conversation_id: str) -> bool:
        """Whether the topic has a data key of the conversation by now, or says it was erased.

        Raises EpochEnded.
        """
        await self._catch_up(partition)
        return self._is_told(conversation_key(tenant_id, conversation_id))

    def require_service(self, tenant_id: str, conversation_id: str) -> None:
        """Raise KeysAwayError if nobody could wrap a key of the conversation now."""
        self.vault.new_key(tenant_id, conversation_id)  # which is kept nowhere

    def can_be_asked(self, tenant_id: str, conversation_id: str) -> bool:
        """Whether its key is at hand, if it has one; nothing is waited for."""
        if not self._held.has(conversation_key(tenant_id, conversation_id)):
            return True
        try:
            self.vault.data_key(tenant_id, conversation_id)
        except KeysAwayError:
            return False
        except KeyDestroyedError:
            return True
        return True

    async def ready(self, partition: int, tenant_id: str, conversation_id: str) -> bool:
        """Have a data key of the conversation at hand; False if it is erased.

        Waits for a key that is away. Raises EpochEnded.
        """
        owner = conversation_key(tenant_id, conversation_id)
        if not self._is_told(owner):
            await self._catch_up(partition)
        while not self._is_told(owner):
            new = await self._patiently(
                partition, owner, lambda: self.vault.new_key(tenant_id, conversation_id)
            )
            await self._sender.send(key_message(new, partition))
            await self._catch_up(partition)
        try:
            await self._patiently(
                partition, owner, lambda: self.vault.data_key(tenant_id, conversation_id)
            )
        except KeyDestroyedError:
            return False
        return True

    def _is_told(self, owner: str) -> bool:
        """Whether the topic has a key of the conversation, or says that it was erased."""
        return self._held.has(owner) or self._held.is_destroyed(owner)

    async def look_for(self, partition: int, owner: str, sealed: bytes) -> None:
        """Read the topic to its end, unless the key of sealed bytes is at hand or destroyed.

        Raises EpochEnded.
        """
        try:
            key_id = key_id_of(sealed).hex()
        except SealedBytesError:
            return
        if self._held.is_destroyed(owner):
            return
        if all(key.key_id != key_id for key in self._held.find(owner)):
            await self._catch_up(partition)

    async def opened(
        self, message: Delivered, tenant_id: str, conversation_id: str
    ) -> bytes | None:
        """The event in a message of the log; None if it is erased, or was not sealed for this key.

        Waits for a key that is away. Raises EpochEnded.
        """
        owner = conversation_key(tenant_id, conversation_id)
        sealed = message.value or b""
        try:
            return await self._patiently(
                message.partition,
                owner,
                lambda: self.vault.open(Kind.EVENT, tenant_id, conversation_id, sealed),
            )
        except KeyDestroyedError:
            return None
        except SealedBytesError as changed:
            place = {"partition": message.partition, "offset": message.offset}
            _log.warning("log_bytes_skipped", **place, problem=str(changed))
            return None

    async def _patiently(self, partition: int, owner: str, work: Callable[[], Answer]) -> Answer:
        try:
            while True:
                try:
                    return work()
                except KeysAwayError as away:
                    await self._catch_up(partition)  # somebody may have made it just now
                    if owner in self._waiting:
                        await asyncio.sleep(LOOK_SECONDS)
                        continue
                    self._waiting.add(owner)
                    _log.warning("keys_waited_for", partition=partition, problem=str(away))
        finally:
            self._waiting.discard(owner)
