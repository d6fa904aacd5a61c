"""Sealing on Apache Kafka while workers and archives are killed, of texts that are made to harm."""

from __future__ import annotations

import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from processor.app.interpret import interpret
from processor.app.messages import DEAD_LETTERS, KEYS, OPERATIONS, key_message
from processor.app.partitions import partition_of
from processor.engine.conversation import Conversation
from processor.vault.held_keys import HeldKeys
from processor.vault.sealed import Kind, is_sealed
from processor.vault.tenant_keys import KeyFile, add_tenant_key
from processor.vault.vault import Vault
from replay.sealing import KEY_FILE
from schemas.wire import canonical_bytes, decode_utterance
from tests.archive.archives import COMMAND, archive, ask, send
from tests.erasure.sites import found_in, standfast, statement
from tests.kafka.cluster import Kafka
from tests.kafka.software import ROOT
from tests.pipeline.workers import (
    PARTITIONS,
    SCRIPTED_WORKER,
    Place,
    emitted,
    expected,
    make_topics,
    read,
    running_worker,
    say,
    say_bytes,
    start_worker,
    stop,
    wait_until_done,
)
from tests.waiting import wait_until

DEATH_SECONDS_MAX = 120.0
HARMFUL = (
    "".join(map(chr, range(32))) + "\x7f\u0085\u2028\u202e\ufeff",
    "\x00SEAL\x01" + "a" * 40,
    '{"sealed":"',
    "sealed:AAAA",
    "\U0001f600" * 10_000,
)


def texts() -> list[dict[str, Any]]:
    """Conversations that say harmful things, each with many turns."""
    return [
        statement(f"c{number % 7}", number // 7 + 1, word=HARMFUL[number % 3], text=text)
        for number, text in enumerate(HARMFUL * 28)
    ]


def say_unusable(bootstrap: str) -> list[bytes]:
    """What no utterance can be: lone surrogates, a megabyte; the bytes."""
    key = b"acme/c1"
    lone = orjson.dumps(statement("c1", 900, "LONE")).replace(b"LONE", b"\\ud800")
    large = orjson.dumps(statement("c1", 901, "w", text="x" * 1_000_000))
    say_bytes(bootstrap, *((key, each, partition_of(key, PARTITIONS)) for each in (lone, large)))
    return [lone, large]


def archived(path: Path) -> list[Place]:
    """The log of a sealed archive, by its digests."""
    rows = ask(
        path,
        "SELECT tenant_id, conversation_id, sequence, digest, state_digest FROM log ORDER BY ALL",
    )
    return [Place(*row) for row in rows]


@pytest.mark.parametrize("fault", ["key:1", "key:4", "append:37", "emit:25"])
def test_a_kill_while_sealing_loses_nothing(
    empty_kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A worker dies there, the archive wherever it is; digests are those of a run without keys."""
    bootstrap, kept = empty_kafka.bootstrap, tmp_path / "kept"
    kept.mkdir()
    store, path = kept / "w.duckdb", kept / "a.duckdb"
    said = texts()
    run = expected(said, tmp_path)
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "keys"))
    add_tenant_key(tmp_path / "keys", "*", "k1")
    make_topics(bootstrap)
    say(bootstrap, said)
    unusable = say_unusable(bootstrap)
    settings = {
        "STANDFAST_WORKER_KEY_FILE": str(tmp_path / "keys"),
        "STANDFAST_WORKER_INSTANCE": "one",
    }
    dying = start_worker(bootstrap, store, SCRIPTED_WORKER, STANDFAST_FAULT=fault, **settings)
    assert dying.wait(DEATH_SECONDS_MAX) == -signal.SIGKILL
    with running_worker(bootstrap, store, SCRIPTED_WORKER, **settings) as worker:
        kill_archives(bootstrap, path)
        wait_until_done(bootstrap)
        assert stop(worker) == 0
    copied = archive(bootstrap, path)
    assert copied.returncode == 0, copied.stderr
    assert archived(path) == run.log
    assert emitted(bootstrap) == run.derived
    log = read(bootstrap, OPERATIONS)
    assert all(is_sealed(each.value) for each in log)
    letters = {each.value for each in read(bootstrap, DEAD_LETTERS)}
    assert letters == set(unusable)
    audit = standfast("replay", "audit", "--db", path)
    assert audit.returncode == 0, audit.stdout
    assert found_in("was seen", tmp_path / "expected")
    assert found_in("was seen", kept) == []


def kill_archives(bootstrap: str, path: Path) -> None:
    """Kill one -9 as soon as it has begun a file, and the next ones a little later each."""
    for later in (0.0, 0.3, 0.9):
        command = [*COMMAND, "archive", "--bootstrap", bootstrap, "--db", str(path)]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as process:
            wait_until(path.exists)
            time.sleep(later)
            process.kill()


def old_event(vault: Vault, held: HeldKeys, tenant: str, name: str) -> list[tuple[str, Any]]:
    """A data key and a sealed event of a conversation, as records."""
    key = vault.new_key(tenant, name)
    held.take(key)
    said = orjson.dumps(statement(name, 1, "roof", tenant_id=tenant))
    event = interpret(Conversation.empty(tenant, name), decode_utterance(said))
    assert not isinstance(event, tuple)
    owner = f"{tenant}/{name}".encode()
    partition = partition_of(owner, PARTITIONS)
    kept = key_message(key, partition)
    sealed = vault.seal(Kind.EVENT, tenant, name, canonical_bytes(event))
    return [
        (KEYS, {"key": kept.key, "value": kept.value, "partition": partition}),
        (OPERATIONS, {"key": owner, "value": sealed, "partition": partition}),
    ]


def test_what_is_due_on_brokers_is_erased(empty_kafka: Kafka, tmp_path: Path) -> None:
    """By the brokers' time and the tenant's days; a worker then finds the one closed."""
    bootstrap, key_file, tenants = empty_kafka.bootstrap, tmp_path / "keys", tmp_path / "tenants"
    add_tenant_key(key_file, "*", "k1")
    make_topics(bootstrap)
    tenants.write_text('{"tenant": "acme", "keep_days": 30}\n')
    held = HeldKeys()
    vault = Vault(KeyFile(key_file), held)
    now = datetime.now(UTC)
    for tenant, name, days in (("acme", "old", 31), ("acme", "new", 29), ("else", "old", 400)):
        (key, event) = old_event(vault, held, tenant, name)
        at = int((now - timedelta(days=days)).timestamp() * 1_000)
        send(bootstrap, [key, (event[0], {**event[1], "timestamp_ms": at})])
    due = ("erase", "--due", "--tenants", tenants, "--bootstrap", bootstrap, "--json")
    first, again = (orjson.loads(standfast(*due).stdout)["erased"] for _ in range(2))
    assert [(each["tenant_id"], each["conversation_id"]) for each in first] == [("acme", "old")]
    assert again == []
    settings = {"STANDFAST_WORKER_KEY_FILE": str(key_file)}
    with running_worker(bootstrap, tmp_path / "w.duckdb", **settings) as worker:
        said = [statement(name, 2, "roof", tenant_id="acme") for name in ("old", "new")]
        say(bootstrap, said)
        wait_until_done(bootstrap)
        assert stop(worker) == 0
    (letter,) = read(bootstrap, DEAD_LETTERS)
    assert (letter.key, letter.value) == (b"acme/old", b"")
