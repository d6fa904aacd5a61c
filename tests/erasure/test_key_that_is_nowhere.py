"""The log holds what was sealed with a data key that is not in the topic of the keys."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from processor.app.interpret import interpret
from processor.app.messages import OPERATIONS, key_message
from processor.app.partitions import partition_of
from processor.app.sender import Sender
from processor.app.settings import KafkaSettings
from processor.engine.conversation import Conversation
from processor.vault.held_keys import HeldKeys
from processor.vault.sealed import Kind
from processor.vault.tenant_keys import KeyFile, add_tenant_key
from processor.vault.vault import Vault
from schemas.keys import WrappedKey
from schemas.wire import canonical_bytes, decode_utterance
from tests.archive.archives import archive, make_topics, send
from tests.erasure.sites import standfast, statement
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import running_worker, say, stop, wait_until_done

PARTITIONS = 2
OWNER = b"acme/ghost"


def sealed_elsewhere(key_file: Path) -> tuple[WrappedKey, bytes]:
    """A data key that is kept nowhere, and the first event of a conversation, sealed with it."""
    held = HeldKeys()
    vault = Vault(KeyFile(key_file), held)
    wrapped = vault.new_key("acme", "ghost")
    held.take(wrapped)
    said = decode_utterance(orjson.dumps(statement("ghost", 1, "sheet")))
    event = interpret(Conversation.empty("acme", "ghost"), said)
    assert not isinstance(event, tuple)
    return wrapped, vault.seal(Kind.EVENT, "acme", "ghost", canonical_bytes(event))


async def bring_back(bootstrap: str, key: WrappedKey, partition: int) -> None:
    """The key is in its topic."""
    async with Sender(KafkaSettings(bootstrap=bootstrap).client_options()) as sender:
        await sender.send(key_message(key, partition))


@pytest.mark.parametrize(
    ("name", "comes_back"), [("archive.duckdb", True), ("segments", True), ("segments", False)]
)
def test_an_archive_goes_on_beside_it(
    empty_kafka: Kafka, tmp_path: Path, name: str, comes_back: bool
) -> None:
    """All is copied and the rest is folded, until the key is back or given up by erasing."""
    bootstrap, path, key_file = empty_kafka.bootstrap, tmp_path / name, tmp_path / "keys"
    add_tenant_key(key_file, "*", "k1")
    make_topics(bootstrap, PARTITIONS)
    here = partition_of(OWNER, PARTITIONS)
    near = next(
        each
        for each in map("near-{}".format, range(100))
        if partition_of(f"acme/{each}".encode(), PARTITIONS) != here
    )
    key, sealed = sealed_elsewhere(key_file)
    send(bootstrap, [(OPERATIONS, {"key": OWNER, "value": sealed, "partition": here})])
    keys = ("--key-file", str(key_file))
    place = f"operations/{here} at 0 is sealed: acme/ghost: its data key {key.key_id} is not there"
    settings = {"STANDFAST_WORKER_KEY_FILE": str(key_file)}
    copied = archive(bootstrap, path, *keys)
    assert copied.returncode == 0, copied.stderr
    with running_worker(bootstrap, tmp_path / "worker.duckdb", **settings) as worker:
        say(bootstrap, [statement(near, 1, "roof")], PARTITIONS)
        again = archive(bootstrap, path, *keys)
        if comes_back:
            asyncio.run(bring_back(bootstrap, key, here))
        else:
            named = ("--bootstrap", bootstrap, "--tenant", "acme", "--conversation", "ghost")
            assert "acme/ghost is erased" in standfast("erase", *named).stdout
        wait_until_done(bootstrap, partitions=PARTITIONS)
        assert stop(worker) == 0
    for each in (copied, again):
        (line,) = each.stderr.decode().splitlines()
        assert line.endswith(
            f"{place}; bring it back into the topic keys, or erase the conversation; "
            "it is copied, but not folded from there on"
        )
    assert archive(bootstrap, path, *keys).stderr == b""
    audit = standfast("replay", "audit", "--db", path, *keys)
    assert audit.returncode == 0, audit.stdout
    for conversation, is_there in (("ghost", comes_back), (near, True)):
        state = ("state", "--db", path, "--tenant", "acme", "--conversation", conversation)
        assert (standfast(*state, *keys).returncode == 0) == is_there
