"""Worker processes, what they were given, and what came of it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupCoordinatorNotAvailableError

from processor.app.fetched import new_consumer
from processor.app.messages import DERIVED_TOPICS, OPERATIONS, UTTERANCES
from processor.app.partitions import partition_of
from processor.app.settings import KafkaSettings
from processor.app.topics import Layout, create
from schemas.ids import conversation_key
from tests.kafka.software import ROOT

Utterances = Sequence[dict[str, Any]]
PARTITIONS = 4
GROUP = "standfast"
START_SECONDS_MAX = 120.0


class Place(NamedTuple):
    """One line of a log, by its digests."""

    tenant_id: str
    conversation_id: str
    sequence: int
    digest: str
    state_digest: str


def make_topics(bootstrap: str, partitions: int = PARTITIONS, replication: int = 1) -> None:
    """Create the topics of the pipeline, by default on a broker that is alone."""
    done = asyncio.run(create(KafkaSettings(bootstrap=bootstrap), Layout(partitions, replication)))
    assert not done.mismatches


WORKER = ("processor.cli", "worker")
SCRIPTED_WORKER = ("tests.faults.scripted_worker",)


def start_worker(
    bootstrap: str, store: Path, program: Sequence[str] = WORKER, **environment: str
) -> subprocess.Popen:
    """A worker that is starting; its log stands beside its store."""
    with store.with_suffix(".log").open("ab") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", *program],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env={
                "PATH": "",
                "STANDFAST_KAFKA_BOOTSTRAP": bootstrap,
                "STANDFAST_WORKER_STORE": str(store),
                "STANDFAST_WORKER_REPLICATION": "1",
                **environment,
            },
        )


@contextmanager
def running_worker(
    bootstrap: str, store: Path, program: Sequence[str] = WORKER, **environment: str
) -> Iterator[subprocess.Popen]:
    """A worker that has started; it is killed at the end if it still runs.

    Its log is printed if something fails.
    """
    log = store.with_suffix(".log")
    said_before = log.stat().st_size if log.exists() else 0
    process = start_worker(bootstrap, store, program, **environment)
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while b"worker_started" not in log.read_bytes()[said_before:]:
            assert process.poll() is None, "the worker did not start"
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield process
    except BaseException:
        print(log.read_text()[-20_000:])
        raise
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def stop(process: subprocess.Popen, seconds_max: float = 120.0) -> int:
    """SIGTERM, and the exit status."""
    process.send_signal(signal.SIGTERM)
    return process.wait(seconds_max)


def kill(processes: Iterable[subprocess.Popen]) -> None:
    """Kill -9, for those that still run."""
    for process in processes:
        process.kill()
        process.wait()


async def _send(bootstrap: str, messages: Sequence[tuple[bytes | None, bytes | None, int]]) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, linger_ms=5
    ) as producer:
        sent = [
            await producer.send(UTTERANCES, value=value, key=key, partition=partition)
            for key, value, partition in messages
        ]
        await asyncio.gather(*sent)


def say(bootstrap: str, utterances: Utterances, partitions: int = PARTITIONS) -> None:
    """Publish utterances in their order."""
    messages: list[tuple[bytes | None, bytes | None, int]] = []
    for utterance in utterances:
        tenant_id = utterance.get("tenant_id", "default")
        key = conversation_key(tenant_id, utterance["conversation_id"]).encode()
        messages.append((key, orjson.dumps(utterance), partition_of(key, partitions)))
    asyncio.run(_send(bootstrap, messages))


def say_bytes(bootstrap: str, *messages: tuple[bytes | None, bytes | None, int]) -> None:
    """Publish (key, value, partition) as they are."""
    asyncio.run(_send(bootstrap, messages))


async def _is_done(bootstrap: str, topic: str, partitions: int) -> bool:
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        places = [TopicPartition(topic, each) for each in range(partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        committed = await admin.list_consumer_group_offsets(GROUP, partitions=places)
    except GroupCoordinatorNotAvailableError:  # nobody has joined it yet
        return False
    finally:
        await admin.close()
    return all(not end or committed[place].offset == end for place, end in ends.items())


def wait_until_done(
    bootstrap: str, seconds_max: float = 240.0, partitions: int = PARTITIONS
) -> None:
    """Until the group has committed all that was said, and all that came of it in the log."""
    deadline = time.monotonic() + seconds_max
    for topic in (UTTERANCES, OPERATIONS):
        while not asyncio.run(_is_done(bootstrap, topic, partitions)):
            assert time.monotonic() < deadline, f"{topic} is not committed to its end"
            time.sleep(0.3)


def work_through(bootstrap: str, store: Path, partitions: int = PARTITIONS) -> None:
    """A worker works until all is done, and ends when it is asked to."""
    with running_worker(bootstrap, store) as worker:
        wait_until_done(bootstrap, partitions=partitions)
        assert stop(worker) == 0


async def _read(bootstrap: str, topic: str, partitions: int) -> list[Any]:
    async with new_consumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=50
    ) as consumer:
        places = [TopicPartition(topic, each) for each in range(partitions)]
        consumer.assign(places)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(places)
        records: list[Any] = []
        while any([await consumer.position(place) < end for place, end in ends.items()]):
            for some in (await consumer.getmany(timeout_ms=200)).values():
                records += some
        return records


def read(bootstrap: str, topic: str, partitions: int = PARTITIONS) -> list[Any]:
    """Every record of a topic, one partition after the other, each in its order."""
    found = asyncio.run(_read(bootstrap, topic, partitions))
    return sorted(found, key=lambda record: (record.partition, record.offset))


def emitted(bootstrap: str, partitions: int = PARTITIONS) -> dict[str, bytes]:
    """Every derived event on its topic, by its id; the same id always says the same."""
    events: dict[str, bytes] = {}
    for topic in DERIVED_TOPICS.values():
        for record in read(bootstrap, topic, partitions):
            id_ = dict(record.headers)["ce_id"].decode()
            assert events.setdefault(id_, record.value) == record.value
    return events


def places(store: Path) -> list[Place]:
    """The log of a store, by its digests."""
    with duckdb.connect(str(store), read_only=True) as connection:
        rows = connection.execute(
            "SELECT tenant_id, conversation_id, sequence, digest, state_digest "
            "FROM log ORDER BY ALL"
        ).fetchall()
    return [Place(*row) for row in rows]


class Expected(NamedTuple):
    """What a one-process run makes of the same input; `letters` are the classes of dead letters.

    There a turn that could not be interpreted is no dead letter, so it is added here.
    """

    log: list[Place]
    derived: dict[str, bytes]
    letters: list[str]


def expected(utterances: Utterances, folder: Path) -> Expected:
    """Run the same utterances without a broker."""
    lines = folder / "expected.jsonl"
    lines.write_bytes(b"\n".join(map(orjson.dumps, utterances)) + b"\n")
    out = folder / "expected"
    run = subprocess.run(
        [sys.executable, "-m", "processor.cli", "run", str(lines), "--out", str(out), "--json"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert run.returncode in (0, 2), run.stderr
    kept = out / "dead-letters.jsonl"
    lines_kept = kept.read_bytes().splitlines() if kept.exists() else []
    letters = [orjson.loads(line)["class"] for line in lines_kept]
    derived: dict[str, bytes] = {}
    for line in run.stdout.splitlines():
        event = orjson.loads(line)
        if event["type"] == "standfast.turn.v1":
            letters += ["not_interpreted"] * (event["data"]["failed"] is not None)
        else:
            data = orjson.dumps(event["data"], option=orjson.OPT_SORT_KEYS)
            derived[event["data"]["event_id"]] = data
    return Expected(places(out / "standfast.duckdb"), derived, letters)
