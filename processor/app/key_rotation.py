"""Wrapping data keys with newer keys of their tenants; what they sealed stays as it is."""

from __future__ import annotations

from aiokafka import TopicPartition

from processor.app.messages import KEYS, key_message
from processor.app.recovery import log_range
from processor.app.sender import Sender
from processor.app.settings import KafkaSettings
from processor.app.topic_reader import paused_reader
from processor.app.topics import partition_count
from processor.vault.held_keys import HeldKeys
from processor.vault.key_folder import KeyFolder
from processor.vault.vault import Vault
from schemas.keys import TICK_KEY, decode_key_record
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
    places = [TopicPartition(KEYS, each) for each in range(partitions)]
    async with (
        paused_reader(settings, places) as reader,
        Sender(settings.client_options()) as sender,
    ):
        firsts = await reader.beginning_offsets(places)
        ends = await reader.end_offsets(places)
        for place in places:
            held = HeldKeys()
            async for message in log_range(
                reader, place.partition, firsts[place], ends[place], KEYS
            ):
                if message.value is None or message.key == TICK_KEY:
                    continue
                try:
                    held.take(decode_key_record(message.value))
                except WireError:
                    continue  # of a newer version, which has its own command
            for key in held.every():
                new = vault.rewrapped(key)
                if new is not None:
                    await sender.send(key_message(new, place.partition))
                    count += 1
    return count
