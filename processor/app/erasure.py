"""Erasing conversations: their data keys are destroyed, and the log says that they are over.

The keys go first. Whoever is killed in between leaves a conversation that nobody can read and whose
log does not say why; asked again, the erasure is completed. Erasing twice is erasing once: a second
event in the log is refused by every reader.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, final

from aiokafka import TopicPartition

from processor.app.messages import KEYS, OPERATIONS, Outgoing, key_message, log_message
from processor.app.partitions import partition_of
from processor.app.sender import Sender
from processor.app.settings import KafkaSettings
from processor.app.tenants import Tenants
from processor.app.topic_reader import records_of
from processor.app.topics import partition_count
from processor.engine.conversation import Conversation
from processor.engine.rules_version import CURRENT_RULES
from processor.evidence.fold import Refused
from processor.interpreter.native import NATIVE
from processor.render.reduce import reduce
from processor.vault.key_folder import KeyFolder
from processor.vault.sealed import is_sealed
from replay.archive_batch import conversation_of
from replay.errors import StoreBusyError, StoreError
from replay.sealing import ERASED_TYPE, keys_of
from replay.segments_found import read_manifest
from replay.store import Store
from replay.store_file import SEALED_FORMAT, connect, is_sealed_store
from schemas.ids import conversation_key
from schemas.keys import TICK_KEY, DestroyedKey, WrappedKey, decode_key_record
from schemas.log import ConversationErased, UtteranceRef
from schemas.wire import WireError, decode_log_event

UTTERANCE_ID = "erasure"
SPEAKER = "standfast"


@final
class Erased(NamedTuple):
    """What was done to a conversation.

    `was_known`: it had data keys, or was erased before. `in_the_clear`: how many of its events
    stand in the log as they were said, from before there was a key file; nothing erases those.
    """

    tenant_id: str
    conversation_id: str
    was_known: bool
    in_the_clear: int = 0


def erased_event(tenant_id: str, conversation_id: str, at: datetime) -> ConversationErased:
    """The event that says so; it needs no key, and no knowledge of what was before."""
    owner = conversation_key(tenant_id, conversation_id)
    digest = hashlib.sha256(f"erasure of {owner}".encode()).hexdigest()
    return ConversationErased(
        type=ERASED_TYPE,
        tenant_id=tenant_id,
        conversation_id=conversation_id,
        sequence=1,
        rules_version=CURRENT_RULES,
        utterance=UtteranceRef(id=UTTERANCE_ID, digest=digest),
        speaker=SPEAKER,
        role="system",
        at=at,
        provenance=NATIVE,
    )


# -- on the brokers -------------------------------------------------------------------------------


@final
class BrokerErasure:
    """Erases on the brokers; `sender` is started. Every method raises BrokerError."""

    def __init__(self, settings: KafkaSettings, sender: Sender, partitions: int) -> None:
        self._settings = settings
        self._sender = sender
        self._partitions = partitions

    async def erase(self, tenant_id: str, conversation_id: str, at: datetime) -> Erased:
        """Erase a conversation, or complete its erasure."""
        was_known = await self.destroy_keys(tenant_id, conversation_id)
        event = erased_event(tenant_id, conversation_id, at)
        owner = conversation_key(tenant_id, conversation_id).encode()
        partition = partition_of(owner, self._partitions)
        in_the_clear, is_told = await self._log_of(owner, partition)
        if not is_told:
            await self._sender.send(log_message(event, partition))
        return Erased(tenant_id, conversation_id, was_known or is_told, in_the_clear)

    async def destroy_keys(self, tenant_id: str, conversation_id: str) -> bool:
        """Destroy the data keys of a conversation; whether it was known."""
        owner = conversation_key(tenant_id, conversation_id)
        partition = partition_of(owner.encode(), self._partitions)
        keys, was_destroyed = await self._keys_of(owner, partition)
        if not was_destroyed:
            mark = DestroyedKey(tenant_id=tenant_id, conversation_id=conversation_id)
            await self._sender.send(key_message(mark, partition))
        for key in keys:
            await self._sender.send(Outgoing(KEYS, partition, key, None, ()))
        return bool(keys) or was_destroyed

    async def let_compact(self) -> None:
        """Write after what was destroyed: brokers compact only what something came after."""
        for partition in range(self._partitions):
            await self._sender.send(Outgoing(KEYS, partition, TICK_KEY, b"{}", ()))

    async def last_said(self) -> dict[tuple[str, str], datetime]:
        """When the log last heard of each conversation that is not erased, by the brokers' time."""
        found: dict[tuple[str, str], datetime] = {}
        places = [TopicPartition(OPERATIONS, each) for each in range(self._partitions)]
        async with aclosing(records_of(self._settings, places)) as records:
            async for record in records:
                _note_time(found, record.key, record.value, record.timestamp)
        return found

    async def _keys_of(self, owner: str, partition: int) -> tuple[list[bytes], bool]:
        """The keys of the records that hold data keys, and whether there is a destroyed mark."""
        held: dict[bytes, None] = {}
        was_destroyed = False
        async for key, value in self._records(KEYS, partition):
            if value is None:
                held.pop(key, None)
                continue
            try:
                record = decode_key_record(value)
            except WireError:
                continue
            if conversation_key(record.tenant_id, record.conversation_id) != owner:
                continue
            if isinstance(record, WrappedKey):
                held[key] = None
            was_destroyed |= isinstance(record, DestroyedKey)
        return list(held), was_destroyed

    async def _log_of(self, owner: bytes, partition: int) -> tuple[int, bool]:
        """How many events of a conversation stand in the clear, and whether its end is told."""
        in_the_clear, is_told = 0, False
        async for key, value in self._records(OPERATIONS, partition):
            if key != owner or value is None or is_sealed(value):
                continue
            if _is_end(value):
                is_told = True
            else:
                in_the_clear += 1
        return in_the_clear, is_told

    async def _records(
        self, topic: str, partition: int
    ) -> AsyncGenerator[tuple[bytes, bytes | None], None]:
        """Key and value of all that a partition has by now."""
        place = TopicPartition(topic, partition)
        async with aclosing(records_of(self._settings, [place])) as records:
            async for record in records:
                yield record.key or b"", record.value


async def broker_erasure(settings: KafkaSettings, sender: Sender) -> BrokerErasure:
    """What erases on these brokers. Raises BrokerError."""
    return BrokerErasure(settings, sender, await partition_count(settings, KEYS))


def _is_end(value: bytes) -> bool:
    try:
        return isinstance(decode_log_event(value), ConversationErased)
    except WireError:
        return False


def _note_time(
    found: dict[tuple[str, str], datetime], key: bytes | None, value: bytes | None, ms: int | None
) -> None:
    tenant_id, conversation_id = conversation_of(key)
    if tenant_id is None or conversation_id is None or value is None or ms is None:
        return
    if not is_sealed(value) and _is_end(value):
        found.pop((tenant_id, conversation_id), None)
        return
    found[tenant_id, conversation_id] = datetime.fromtimestamp(max(ms, 0) / 1_000, UTC)


# -- in files -------------------------------------------------------------------------------------


def erase_in_store(path: Path, tenant_id: str, conversation_id: str, at: datetime) -> Erased:
    """Erase a conversation from the store of a run, or complete its erasure.

    Raises StoreError, also while another process has the store; then nothing was done.
    """
    _refuse_other_kinds(path)
    was_known = destroy_in_folder(keys_of(path), tenant_id, conversation_id)
    with Store(path) as store:
        conversation = store.conversation(tenant_id, conversation_id)
        if conversation is None or not conversation.is_erased:
            conversation = Conversation.empty(tenant_id, conversation_id)
            event = erased_event(tenant_id, conversation_id, at)
            derived = reduce(conversation, event)
            assert not isinstance(derived, Refused)
            store.append(conversation, event, derived)
    return Erased(tenant_id, conversation_id, was_known)


def _refuse_other_kinds(path: Path) -> None:
    if path.is_dir():
        raise StoreError(
            f"{path}: is a folder of segments; of one that follows the brokers give --bootstrap, "
            "else erase from what it was exported from"
        )
    with closing(connect(path, read_only=True)) as connection:
        tables = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
        if not is_sealed_store(connection):
            raise StoreError(f"{path}: keeps what was said in the clear; nothing erases that")
        places = connection.execute("SELECT 1 FROM places LIMIT 1").fetchall()
    if "messages" in tables or places:
        raise StoreError(f"{path}: follows the brokers; give --bootstrap")


def refuse_no_archive(path: Path) -> None:
    """Raise StoreError unless this is a sealed archive of brokers; one may be written meanwhile."""
    if path.is_dir():
        manifest = read_manifest(path)
        is_archive = "messages" in manifest.exported
        is_sealed = manifest.store_format == SEALED_FORMAT
    else:
        try:
            with closing(connect(path, read_only=True)) as connection:
                tables = connection.execute("SHOW TABLES").fetchall()
                is_archive, is_sealed = ("messages",) in tables, is_sealed_store(connection)
        except StoreBusyError:
            return
    if not is_archive:
        raise StoreError(
            f"{path}: is no archive of brokers; erase from a run's without --bootstrap"
        )
    if not is_sealed:
        raise StoreError(f"{path}: keeps what was said in the clear; nothing erases that")


def destroy_in_folder(folder: KeyFolder, tenant_id: str, conversation_id: str) -> bool:
    """Destroy the data keys in a folder; whether the conversation was known there."""
    was_destroyed = folder.is_destroyed(conversation_key(tenant_id, conversation_id))
    return folder.destroy(tenant_id, conversation_id) or was_destroyed


def last_said_in(path: Path) -> dict[tuple[str, str], datetime]:
    """When each conversation of a store that is not erased was last heard of. Raises StoreError."""
    with Store(path, read_only=True) as store:
        rows = store.rows(
            "SELECT tenant_id, conversation_id, max(said_at) FROM log GROUP BY ALL "
            f"HAVING NOT bool_or(type = '{ERASED_TYPE}')"
        )
    return {(tenant_id, conversation_id): said for tenant_id, conversation_id, said in rows}


def due(
    last_said: Mapping[tuple[str, str], datetime], tenants: Tenants, now: datetime
) -> Iterable[tuple[str, str]]:
    """The conversations that are older than their tenant keeps them, in order."""
    for (tenant_id, conversation_id), said in sorted(last_said.items()):
        days = tenants.terms.get(tenant_id, tenants.others).keep_days
        if days is not None and now - said > timedelta(days=days):
            yield tenant_id, conversation_id
