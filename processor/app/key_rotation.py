"""Wrapping data keys with newer keys of their tenants; what they sealed stays as it is."""

from __future__ import annotations

from contextlib import aclosing, suppress

from aiokafka import TopicPartition

from processor.app.messages import KEYS, key_message
from processor.app.sender import Sender
from processor.app.settings import KafkaSettings
from processor.app.topic_reader import records_of
from processor.app.topics import partition_count
from processor.vault.held_keys import HeldKeys
from processor.vault.key_folder import KeyFolder
from processor.vault.vault import Vault
from schemas.keys import TICK_KEY, WrappedKey, decode_key_record
from schemas.wire import WireError


def rewrap_in_folder(folder: KeyFolder, vault: Vault) -> int:
    """Rewrap the keys beside a store; how many were. Raises KeysAwayError."""
    count = 0
    for key in list(folder.every()):
        new = vault.rewrapped(key)
        if new is not None:
            folder.replace(new)
            count += 1
    return count


async def rewrap_on_brokers(settings: KafkaSettings, vault: Vault) -> int:
    """Rewrap the keys in the topic; how many were. Raises KeysAwayError and BrokerError."""
    count = 0
    partitions = await partition_count(settings, KEYS)
    async with Sender(settings.client_options()) as sender:
        for partition in range(partitions):
            for key in await _held(settings, partition):
                new = vault.rewrapped(key)
                if new is not None:
                    await sender.send(key_message(new, partition))
                    count += 1
    return count


async def _held(settings: KafkaSettings, partition: int) -> list[WrappedKey]:
    """The data keys of a partition as its records leave them."""
    held = HeldKeys()
    async with aclosing(records_of(settings, [TopicPartition(KEYS, partition)])) as records:
        async for record in records:
            if record.value is None or record.key == TICK_KEY:
                continue
            with suppress(WireError):  # of a newer version, which has its own command
                held.take(decode_key_record(record.value))
    return held.every()
