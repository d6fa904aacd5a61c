"""A story on one broker: conversations are kept, erased and forgotten, and everything is restored.

What is seen on the way is noted; what is asserted about it stands in `test_on_kafka.py`.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from processor.app.messages import DEAD_LETTERS, DERIVED_TOPICS, KEYS, OPERATIONS, UTTERANCES
from processor.app.partitions import partition_of
from processor.app.topics import Layout
from processor.vault.key_folder import KeyFolder
from processor.vault.sealed import is_sealed
from schemas.keys import TICK_KEY
from schemas.topics import BY_NAME
from tests.archive.archives import send
from tests.erasure.sites import CANARY, found_in, standfast, statement, told
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import delete_topics
from tests.kafka.software import ROOT
from tests.pipeline.workers import read, running_worker, say, start_worker, stop, wait_until_done
from tests.waiting import WAIT_SECONDS_MAX, wait_until

PARTITIONS = 2
NEAR = "harmless"
TOLD, CLOSED = b"acme/told", b"acme/cut"
BOUNDED = (UTTERANCES, DEAD_LETTERS, *DERIVED_TOPICS.values())
BROKER = {
    "log.cleaner.backoff.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "1000",
    "log.segment.delete.delay.ms": "100",
}
"""So that what retention and compaction take in days is taken in seconds."""
KILLED = """
import asyncio, os, signal, sys
from processor.app.erasure import broker_erasure
from processor.app.sender import Sender
from processor.app.settings import KafkaSettings
async def main():
    settings = KafkaSettings(bootstrap=sys.argv[1])
    async with Sender(settings.client_options()) as sender:
        await (await broker_erasure(settings, sender)).destroy_keys("acme", "cut")
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


@dataclass
class Story:
    """What was seen on the way, and where everything is."""

    cluster: Kafka
    folder: Path
    seen: dict[str, Any] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        """The broker."""
        return self.cluster.bootstrap

    @property
    def key_file(self) -> Path:
        """The keys of tenants."""
        return self.folder / "tenant-keys"

    @property
    def archive(self) -> Path:
        """The archive."""
        return self.folder / "archive" / "archive.duckdb"

    @property
    def settings(self) -> dict[str, str]:
        """Of every worker."""
        return {
            "STANDFAST_WORKER_KEY_FILE": str(self.key_file),
            "STANDFAST_WORKER_ERASURE_WINDOW_DAYS": "2",
            "STANDFAST_WORKER_CHECKPOINT_SECONDS": "1",
        }

    def work(self, store: str) -> Any:
        """A worker with a store of that name."""
        (self.folder / store).mkdir(exist_ok=True)
        path = self.folder / store / "worker.duckdb"
        return running_worker(self.bootstrap, path, **self.settings)

    def done(self) -> None:
        """Until everything that was said is committed."""
        wait_until_done(self.bootstrap, WAIT_SECONDS_MAX, PARTITIONS)

    def keep(self) -> subprocess.CompletedProcess[str]:
        """Copy the topics into the archive, and that into Parquet."""
        self.archive.parent.mkdir(exist_ok=True)
        to = ("--bootstrap", self.bootstrap, "--db", self.archive, "--until-end")
        copied = standfast("archive", *to, "--key-file", self.key_file)
        assert copied.returncode == 0, copied.stderr
        parquet = self.folder / "parquet"
        done = standfast("replay", "export", "--db", self.archive, "--parquet", parquet)
        assert done.returncode == 0, done.stderr
        return copied

    def on_disk(self, *topics: str) -> list[Path]:
        """The folders of topics on the broker's disk."""
        data = self.cluster.folder / "data-1"
        return [path for topic in topics for path in sorted(data.glob(f"{topic}-[0-9]*"))]

    def state(self, conversation: str) -> str:
        """What the archive says of a conversation."""
        db = ("--db", self.archive, "--tenant", "acme", "--conversation", conversation)
        return standfast("state", *db, "--json", "--key-file", self.key_file).stdout

    def log_says(self, store: str) -> str:
        """The log of a worker."""
        return (self.folder / store / "worker.log").read_text()

    def events(self, store: str) -> list[dict[str, Any]]:
        """The lines of it that are events."""
        lines = self.log_says(store).rpartition("\n")[0].splitlines()  # the last may be half
        return [orjson.loads(line) for line in lines if line.startswith("{")]

    def of_partition(self, store: str, key: bytes) -> list[str]:
        """The names of the events that are about the partition of a key, in order."""
        partition = partition_of(key, PARTITIONS)
        return [each["event"] for each in self.events(store) if each.get("partition") == partition]


def wait_until_gone(needle: str, *folders: Path) -> None:
    """Until no file has it."""
    wait_until(lambda: not found_in(needle, *folders), told=lambda: found_in(needle, *folders))


def configure(bootstrap: str, names: Sequence[str], **settings: str) -> None:
    """Give topics the settings that were asked for, and these."""
    layout = Layout(PARTITIONS, 1, (), erasure_window_days=2)
    changed = [
        ConfigResource(
            ConfigResourceType.TOPIC,
            name,
            {key: str(value) for key, value in layout.configuration(BY_NAME[name]).items()}
            | {key.replace("_", "."): value for key, value in settings.items()},
        )
        for name in names
    ]

    async def main() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await admin.alter_configs(changed)
        finally:
            await admin.close()

    asyncio.run(main())


def compact_soon(bootstrap: str) -> None:
    """Let the brokers compact the keys in seconds."""
    soon = {"segment_ms": "500", "max_compaction_lag_ms": "1", "delete_retention_ms": "100"}
    configure(bootstrap, [KEYS], min_cleanable_dirty_ratio="0.01", **soon)


def markers(bootstrap: str) -> int:
    """How many sets of checkpoints are complete."""
    return sum(record.key == b"marker" for record in read(bootstrap, "snapshots", PARTITIONS))


def letters(bootstrap: str, class_: bytes) -> list[Any]:
    """The dead letters of a class."""
    found = read(bootstrap, DEAD_LETTERS, PARTITIONS)
    return [each for each in found if dict(each.headers)["class"] == class_]


def lose_what_is_old(story: Story) -> None:
    """Let the brokers' own retention take what the topics with one hold."""
    configure(story.bootstrap, BOUNDED, retention_ms="1")
    wait_until_gone(CANARY, *story.on_disk(*BOUNDED))
    configure(story.bootstrap, BOUNDED)


def begin(story: Story) -> None:
    """Three conversations are worked through, shared and archived."""
    where = ("--bootstrap", story.bootstrap, "--replication", 1)
    made = standfast("topics", "create", *where, "--partitions", 2, "--erasure-window", 2)
    assert made.returncode == 0, made.stdout
    story.seen["checked"] = standfast("topics", "check", *where, "--erasure-window", 2).returncode
    story.seen["too long"] = standfast("topics", "check", *where, "--erasure-window", 1).stdout
    compact_soon(story.bootstrap)
    assert standfast("keys", "create", story.key_file, "--id", "k1").returncode == 0
    said = [*told("told", CANARY), *told("near", NEAR), *told("cut", CANARY)]
    with story.work("first") as worker:
        say(story.bootstrap, said, PARTITIONS)
        story.done()
        wait_until(lambda: markers(story.bootstrap) > 0)
        assert stop(worker) == 0
    story.keep()
    kept = [story.folder, *story.on_disk(OPERATIONS, "snapshots", KEYS)]
    story.seen["kept before"] = found_in(CANARY, *kept)
    story.seen["kept near"] = found_in(NEAR, *kept)
    story.seen["in topics before"] = found_in(CANARY, *story.on_disk(*BOUNDED))
    story.seen["near before"] = story.state("near")
    lines = story.folder.parent / f"{story.folder.name}-in.jsonl"
    lines.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in told("near", NEAR)))
    out = story.folder.parent / f"{story.folder.name}-plain"
    standfast("run", lines, "--out", out)
    db = ("--db", out / "standfast.duckdb", "--tenant", "acme", "--conversation", "near")
    story.seen["near unsealed"] = standfast("state", *db, "--json").stdout


def erase(story: Story) -> None:
    """One is erased while a worker runs, another by who is killed half way, and asked again."""
    named = ("--bootstrap", story.bootstrap, "--db", story.archive, "--key-file", story.key_file)
    sealed = [r for r in read(story.bootstrap, OPERATIONS, PARTITIONS) if r.key == TOLD]
    story.seen["sealed"] = [is_sealed(record.value) for record in sealed]
    keys = KeyFolder(story.archive.with_name("archive.duckdb.keys"))
    story.seen["wrapped"] = [bytes.fromhex(k.wrapped) for k in keys.find(TOLD.decode())]
    (key,) = keys.find(TOLD.decode())
    story.seen["wrapped text"] = key.wrapped
    with story.work("first") as worker:
        erased = standfast("erase", *named, "--tenant", "acme", "--conversation", "told")
        assert erased.returncode == 0, erased.stderr
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, story.bootstrap], cwd=ROOT, check=False, timeout=120
        )
        assert killed.returncode == -signal.SIGKILL
        wait_until(lambda: story.log_says("first").count('"keys_destroyed"') == 2)
        say(story.bootstrap, [statement("cut", 61, CANARY)], PARTITIONS)
        story.done()
        story.seen["cut short"] = letters(story.bootstrap, b"erased")
        again = standfast("erase", *named, "--tenant", "acme", "--conversation", "cut")
        assert again.returncode == 0, again.stderr
        unknown = standfast("erase", *named, "--tenant", "acme", "--conversation", "nobody")
        story.seen["unknown"] = (unknown.returncode, unknown.stderr)
        say(story.bootstrap, [statement("told", 62, CANARY)], PARTITIONS)
        near = b"acme/near"  # somebody moves a ciphertext
        moved = {"key": near, "value": sealed[2].value, "partition": partition_of(near, PARTITIONS)}
        send(story.bootstrap, [(OPERATIONS, moved)])
        say(story.bootstrap, [statement("near", 70, NEAR, operations=[])], PARTITIONS)
        story.done()
        assert stop(worker) == 0
    story.seen["letters"] = letters(story.bootstrap, b"erased")
    story.keep()


def forget(story: Story) -> None:
    """The window passes, and a worker begins anew with the topics alone, its keys away at first."""
    lose_what_is_old(story)
    for partition in range(PARTITIONS):
        tick = {"key": TICK_KEY, "value": b"{}", "partition": partition}
        send(story.bootstrap, [(KEYS, tick)])
    disk = story.cluster.folder
    wait_until_gone(CANARY, disk)
    wait_until_gone(story.seen["wrapped text"], *story.on_disk(KEYS))
    rotate(story)
    away = story.key_file.with_name("away")
    story.key_file.rename(away)
    (story.folder / "second").mkdir()
    path = story.folder / "second" / "worker.duckdb"
    worker = start_worker(story.bootstrap, path, **story.settings)
    try:
        wait_until(lambda: "keys_waited_for" in story.of_partition("second", b"acme/near"))
        say(story.bootstrap, [statement("near", 71, NEAR, operations=[])], PARTITIONS)
        story.seen["while away"] = len(read(story.bootstrap, OPERATIONS, PARTITIONS))
        away.rename(story.key_file)
        story.done()
        story.seen["when back"] = len(read(story.bootstrap, OPERATIONS, PARTITIONS))
        assert stop(worker) == 0
    finally:
        worker.kill()
        worker.wait()
    story.keep()
    audit = ("replay", "audit", "--db", story.archive, "--key-file", story.key_file)
    story.seen["audit"] = standfast(*audit)
    story.seen["near after"] = story.state("near")
    restore(story)
    wait_until_gone(CANARY, disk, story.folder)


def rotate(story: Story) -> None:
    """Data keys are wrapped with a new key of the tenant, and the old one is taken away."""
    assert standfast("keys", "create", story.key_file, "--id", "k2").returncode == 0
    keys = ("--key-file", story.key_file, "--json")
    rewrap = ("keys", "rewrap", "--bootstrap", story.bootstrap, *keys)
    story.seen["rewrapped"] = [orjson.loads(standfast(*rewrap).stdout) for _ in range(2)]
    _, second = story.key_file.read_text().splitlines()
    story.key_file.write_text(second + "\n")


def restore(story: Story) -> None:
    """The brokers lose everything, and get back what the archive has."""
    asyncio.run(delete_topics(story.bootstrap))
    where = ("--bootstrap", story.bootstrap, "--replication", 1, "--erasure-window", 2)
    made = standfast("topics", "create", *where, "--partitions", PARTITIONS)
    assert made.returncode == 0, made.stdout
    back = ("archive", "restore", "--bootstrap", story.bootstrap, "--db", story.archive)
    restored = standfast(*back, "--key-file", story.key_file)
    assert restored.returncode == 0, restored.stderr
    with story.work("third") as worker:
        say(story.bootstrap, [statement("told", 63, NEAR, operations=[])], PARTITIONS)
        story.done()
        assert stop(worker) == 0
    story.seen["letters after restore"] = letters(story.bootstrap, b"erased")
    db = ("--db", story.folder / "third" / "worker.duckdb", "--tenant", "acme")
    keys = {
        "STANDFAST_KEY_FILE": str(story.key_file),
        "STANDFAST_WRAPPED_KEYS": f"{story.archive}.keys",
    }
    state = standfast("state", *db, "--conversation", "near", "--json", **keys)
    story.seen["near restored"] = state.stdout
