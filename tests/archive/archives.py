"""Topics with hostile contents, archives of them, and both as rows that can be compared."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete

from processor.app.settings import KafkaSettings
from processor.app.topic_reader import our_partitions
from processor.app.topics import Layout, create
from replay.opened import opened
from tests.kafka.software import ROOT

Row = tuple[str, int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Topic, partition, offset, timestamp, key, value, headers."""
COMMAND = (sys.executable, "-m", "processor.cli")
SECONDS_MAX = 120


def make_topics(bootstrap: str, partitions: int, *tenants: str) -> None:
    """The topics of the pipeline, also those of these tenants' alerts, on a broker alone."""
    layout = Layout(partitions, 1, tenants)
    assert not asyncio.run(create(KafkaSettings(bootstrap=bootstrap), layout)).mismatches


def send(bootstrap: str, records: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Put records on topics, in order, as they are."""

    async def main() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            enable_idempotence=True,
            linger_ms=5,
            max_request_size=17 * 1_048_576,
        ) as producer:
            sent = [await producer.send(topic, **record) for topic, record in records]
            await asyncio.gather(*sent)

    asyncio.run(main())


def on_brokers(bootstrap: str) -> list[Row]:
    """Every message of every topic of the pipeline, read by a client of its own."""

    async def main() -> list[Row]:
        places = await our_partitions(KafkaSettings(bootstrap=bootstrap))
        async with AIOKafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=50
        ) as consumer:
            consumer.assign(places)
            await consumer.seek_to_beginning()
            ends = await consumer.end_offsets(places)
            rows: list[Row] = []
            while any([await consumer.position(place) < end for place, end in ends.items()]):
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    for each in records:
                        place = (each.topic, each.partition, each.offset, each.timestamp)
                        rows.append((*place, each.key, each.value, tuple(each.headers)))
            return sorted(rows, key=lambda row: row[:3])

    return asyncio.run(main())


def in_archive(path: Path) -> list[Row]:
    """Every message of an archive."""
    rows = ask(
        path,
        'SELECT topic, partition, "offset", timestamp_ms, key, value, headers FROM messages '
        'ORDER BY topic, partition, "offset"',
    )
    return [
        (*rest, tuple((header["name"], header["value"]) for header in headers))
        for *rest, headers in rows
    ]


def ask(path: Path, query: str) -> list[Any]:
    """Rows of an archive, which nobody writes if it is one file."""
    with closing(opened(path)) as connection:
        return connection.execute(query).fetchall()


def archive(bootstrap: str, path: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Archive to the end, in a process of its own."""
    return subprocess.run(
        [*COMMAND, "archive", *_connection(bootstrap, path), "--until-end", *options],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=120,
    )


def following(bootstrap: str, path: Path) -> subprocess.Popen[bytes]:
    """An archive that follows the topics."""
    return subprocess.Popen(
        [*COMMAND, "archive", *_connection(bootstrap, path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def size(path: Path) -> int:
    """Bytes of the file and of what DuckDB writes beside it."""
    files = (path, path.with_name(f"{path.name}.wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def wait_until_it_follows(bootstrap: str, path: Path, process: subprocess.Popen[bytes]) -> None:
    """Send three megabytes, and wait until most of it shows in the size of the file.

    Nothing else that the process does makes its file grow as much.
    """
    before = size(path)
    value = random.Random(before).randbytes(1_000_000)
    send(bootstrap, [("utterances", {"value": value, "partition": 0})] * 3)
    deadline = time.monotonic() + SECONDS_MAX
    while size(path) <= before + 2_000_000:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _connection(bootstrap: str, path: Path) -> tuple[str, ...]:
    """A path without a suffix is that of a folder of segments."""
    return ("--bootstrap", bootstrap, "--db" if path.suffix else "--parquet", str(path))


async def records_deleted_before(bootstrap: str, place: TopicPartition, offset: int) -> None:
    """Have the brokers forget what lies before an offset, as retention does."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.delete_records({place: RecordsToDelete(offset)})
    finally:
        await admin.close()


def delete_before(bootstrap: str, topic: str, partition: int, offset: int) -> None:
    """The same, where no event loop runs."""
    asyncio.run(records_deleted_before(bootstrap, TopicPartition(topic, partition), offset))
