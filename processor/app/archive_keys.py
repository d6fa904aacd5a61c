"""How an archive is sealed: the wrapped data keys beside it, and its messages as ciphertext.

The topic `keys` is not copied like the others: what is deleted from a DuckDB file stays in its
bytes. Its records become files beside the archive, and a destroyed mark unlinks one. What topics
hold in the clear for a while is sealed on its way into the archive, and what belongs to no
conversation that could be erased is not kept at all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import final

import orjson

from processor.app.letters import REASON
from processor.app.messages import DEAD_LETTERS, KEYS, OPERATIONS, SNAPSHOTS, UTTERANCES
from processor.app.partitions import partition_of
from processor.app.sender import Sender
from processor.app.settings import KafkaSettings
from processor.app.topics import partition_count
from processor.app.worker_keys import WorkerKeys
from processor.vault.errors import KeyDestroyedError
from processor.vault.key_folder import KeyFolder
from processor.vault.sealed import Kind, is_sealed
from processor.vault.vault import Vault
from replay.archive_batch import ArchivedMessage, conversation_of
from replay.sealing import ERASED_TYPE, keys_of, tenant_keys
from schemas.checkpoint import read_record
from schemas.ids import conversation_key
from schemas.keys import DestroyedKey, KeyRecord, WrappedKey
from schemas.wire import WireError

WITHHELD = "withheld"
"""The header of a message of which the archive has nothing but its place, and why."""


@final
class Mirror:
    """Keeps the wrapped data keys of the topic as files."""

    def __init__(self, folder: KeyFolder) -> None:
        self._folder = folder

    def take(self, record: KeyRecord) -> None:
        """Do to the files what a record of the topic says. Raises KeysAwayError."""
        owner = conversation_key(record.tenant_id, record.conversation_id)
        match record:
            case DestroyedKey():
                self._folder.destroy(record.tenant_id, record.conversation_id)
            case WrappedKey() if not self._folder.is_destroyed(owner):
                known = {each.key_id: each for each in self._folder.find(owner)}
                if record.key_id not in known:
                    self._folder.add(record)
                elif known[record.key_id] != record:
                    self._folder.replace(record)


@final
class MessageSealer:
    """Seals messages for an archive; `vault` is the archive's own."""

    def __init__(self, keys: WorkerKeys, vault: Vault, partitions: int) -> None:
        self._keys = keys
        self._vault = vault
        self._partitions = partitions

    def is_closed(self, message: ArchivedMessage) -> bool:
        """Whether the conversation of the message is erased."""
        tenant_id, conversation_id = conversation_of(message.key)
        if tenant_id is None or conversation_id is None:
            return False
        return self._keys.is_closed(tenant_id, conversation_id)

    async def sealed(self, message: ArchivedMessage) -> ArchivedMessage:
        """The message as the archive keeps it; the same whenever it is asked for.

        Waits for a key that is away. Raises KeysAwayError where the files fail.
        """
        value = message.value
        if value is None or _says_it_was_erased(message):
            return message
        if message.topic == SNAPSHOTS:
            return message if _tells_nothing(value) else _withheld(message, "not sealed")
        tenant_id, conversation_id = conversation_of(message.key)
        if _is_sealed_event(message):
            if tenant_id is not None and conversation_id is not None:
                await self._find_key(conversation_key(tenant_id, conversation_id), value)
            return message
        if tenant_id is None or conversation_id is None or _is_of_another(message):
            return _withheld(message, "of no conversation")
        partition = partition_of(message.key or b"", self._partitions)
        if not await self._keys.ready(partition, tenant_id, conversation_id):
            return _withheld(message, "erased")
        kind = Kind.EVENT if message.topic == OPERATIONS else Kind.MESSAGE
        try:
            key = self._vault.data_key(tenant_id, conversation_id)
        except KeyDestroyedError:
            return _withheld(message, "erased")
        headers = tuple(
            (name, key.seal(Kind.MESSAGE, said) if name == REASON and said is not None else said)
            for name, said in message.headers
        )
        return message._replace(value=key.seal(kind, value), headers=headers)

    async def _find_key(self, owner: str, sealed: bytes) -> None:
        """Have the key beside the archive before the event is: its topic is read by itself."""
        await self._keys.look_for(partition_of(owner.encode(), self._partitions), owner, sealed)


def _is_sealed_event(message: ArchivedMessage) -> bool:
    """Whether a worker sealed it; elsewhere anybody may send bytes that look like that."""
    return message.topic == OPERATIONS and is_sealed(message.value or b"")


def _says_it_was_erased(message: ArchivedMessage) -> bool:
    return message.topic == OPERATIONS and _named(message.value).get("type") == ERASED_TYPE


def _tells_nothing(record: bytes) -> bool:
    """Whether a record of the snapshots has no conversation in the clear."""
    try:
        _, payload = read_record(record)
    except WireError:
        return False
    return not payload or is_sealed(payload)


def _is_of_another(message: ArchivedMessage) -> bool:
    """Whether what somebody sent names another conversation than its key, as some mistakes do."""
    if message.topic not in (UTTERANCES, DEAD_LETTERS):
        return False
    named = _named(message.value)
    own = conversation_of(message.key)
    told = (named.get("tenant_id", own[0]), named.get("conversation_id", own[1]))
    return told != own


def _named(value: bytes | None) -> dict[str, object]:
    try:
        read = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return {}
    return read if isinstance(read, dict) else {}


def _withheld(message: ArchivedMessage, why: str) -> ArchivedMessage:
    headers = tuple((name, said) for name, said in message.headers if name != REASON)
    return message._replace(value=None, headers=(*headers, (WITHHELD, why.encode())))


@asynccontextmanager
async def sealing(
    settings: KafkaSettings, path: Path, vault: Vault | None
) -> AsyncIterator[MessageSealer | None]:
    """What seals for the archive at a path; None for one that is kept in the clear.

    Raises BrokerError, and KeysAwayError.
    """
    if vault is None:
        yield None
        return
    wraps = tenant_keys()
    wraps.check()
    partitions = await partition_count(settings, KEYS)
    async with Sender(settings.client_options()) as sender:
        mirror = Mirror(keys_of(path))
        keys = WorkerKeys(wraps, settings.client_options(), sender, mirror.take)
        try:
            await keys.begin(list(range(partitions)))
            yield MessageSealer(keys, vault, partitions)
        finally:
            await keys.end()
