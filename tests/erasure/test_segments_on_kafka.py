"""A sealed archive that is written as segments: erased in, restored from, read again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from processor.app import worker_keys
from processor.app.archive_keys import sealing
from processor.app.interpret import interpret
from processor.app.messages import KEYS, OPERATIONS, key_message
from processor.app.partitions import partition_of
from processor.app.sender import Sender
from processor.app.settings import KafkaSettings
from processor.engine.conversation import Conversation
from processor.vault.held_keys import HeldKeys
from processor.vault.key_folder import KeyFolder
from processor.vault.sealed import Kind
from processor.vault.tenant_keys import KeyFile, add_tenant_key
from processor.vault.vault import Vault
from replay.archive_batch import ArchivedMessage
from replay.sealing import KEY_FILE, vault_for
from schemas.wire import canonical_bytes, decode_utterance
from tests.archive.archives import archive, make_topics
from tests.erasure.sites import CANARY, found_in, standfast, statement, told
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import delete_topics
from tests.pipeline.workers import read, running_worker, say, stop, wait_until_done

PARTITIONS = 2


def keep(bootstrap: str, folder: Path, key_file: Path) -> None:
    """Copy the topics into the folder."""
    kept = archive(bootstrap, folder, "--key-file", str(key_file))
    assert kept.returncode == 0, kept.stderr


def test_a_sealed_folder_is_erased_in_and_restored_from(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Its keys go with `erase --db FOLDER`; the rest is read again, audited and restored."""
    bootstrap, folder, key_file = empty_kafka.bootstrap, tmp_path / "segments", tmp_path / "keys"
    add_tenant_key(key_file, "*", "k1")
    make_topics(bootstrap, PARTITIONS)
    settings = {"STANDFAST_WORKER_KEY_FILE": str(key_file)}
    with running_worker(bootstrap, tmp_path / "worker.duckdb", **settings) as worker:
        say(bootstrap, [*told("told", CANARY), *told("near", "harmless")], PARTITIONS)
        wait_until_done(bootstrap, partitions=PARTITIONS)
        assert stop(worker) == 0
    keep(bootstrap, folder, key_file)
    named = ("--bootstrap", bootstrap, "--tenant", "acme", "--conversation", "told")
    erased = standfast("erase", *named, "--db", folder, "--key-file", key_file)
    assert (erased.returncode, erased.stderr) == (0, "")
    assert [key.conversation_id for key in KeyFolder(tmp_path / "segments.keys").every()] == [
        "near"
    ]
    keep(bootstrap, folder, key_file)
    audit = standfast("replay", "audit", "--db", folder, "--key-file", key_file)
    assert (audit.returncode, "acme/told was erased" in audit.stdout) == (0, True), audit.stdout
    assert found_in(CANARY, tmp_path) == []

    again = ("replay", "reinterpret", "--db", folder, "--out", tmp_path / "again", "--json")
    compared = standfast(*again, "--key-file", key_file)
    (near,) = orjson.loads(compared.stdout)["conversations"]
    assert (near["conversation_id"], near["exact_match"]) == ("near", 1.0)

    log = [(each.key, each.value) for each in read(bootstrap, OPERATIONS, PARTITIONS)]
    asyncio.run(delete_topics(bootstrap))
    make_topics(bootstrap, PARTITIONS)
    back = ("archive", "restore", "--bootstrap", bootstrap, "--db", folder)
    restored = standfast(*back, "--key-file", key_file)
    assert restored.returncode == 0, restored.stderr
    assert [(each.key, each.value) for each in read(bootstrap, OPERATIONS, PARTITIONS)] == log
    keys = [orjson.loads(each.value)["type"] for each in read(bootstrap, KEYS, PARTITIONS)]
    assert sorted(keys) == ["standfast.data_key.v1", "standfast.data_key_destroyed.v1"]


def test_a_key_is_beside_the_archive_before_what_it_opens(
    empty_kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sealed event whose key came to its topic just before is kept with that key."""
    monkeypatch.setattr(worker_keys, "LOOK_SECONDS", 3_600.0)  # the topic is not followed by chance
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "keys"))
    add_tenant_key(tmp_path / "keys", "*", "k1")
    make_topics(empty_kafka.bootstrap, PARTITIONS)
    settings, path = KafkaSettings(bootstrap=empty_kafka.bootstrap), tmp_path / "archive.duckdb"
    held = HeldKeys()
    vault = Vault(KeyFile(tmp_path / "keys"), held)
    wrapped = vault.new_key("acme", "near")
    held.take(wrapped)
    event = interpret(
        Conversation.empty("acme", "near"),
        decode_utterance(orjson.dumps(statement("near", 1, "harmless"))),
    )
    assert not isinstance(event, tuple)
    sealed = vault.seal(Kind.EVENT, "acme", "near", canonical_bytes(event))
    partition = partition_of(b"acme/near", PARTITIONS)
    message = ArchivedMessage(OPERATIONS, partition, 0, -1, b"acme/near", (), sealed)

    async def main() -> ArchivedMessage:
        async with (
            sealing(settings, path, vault_for(path)) as sealer,
            Sender(settings.client_options()) as sender,
        ):
            assert sealer is not None
            await sender.send(key_message(wrapped, partition))
            return await sealer.sealed(message)

    assert asyncio.run(main()) == message
    kept = vault_for(path)
    assert kept is not None
    assert kept.open(Kind.EVENT, "acme", "near", sealed) == canonical_bytes(event)
