"""An event of a newer version in the log: its partition waits, and everything else goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
from aiokafka import AIOKafkaProducer

from processor.app.messages import OPERATIONS
from processor.app.partitions import partition_of
from tests.faults.test_endpoint import get
from tests.kafka.cluster import Kafka, free_ports
from tests.pipeline.workers import PARTITIONS, make_topics, read, running_worker, say, stop
from tests.strategies_streams import seeded_stream
from tests.waiting import wait_until

CONVERSATIONS = [(f"tenant-{n % 4}", f"c{n % 3}") for n in range(12)]
STOPPED = 0


async def write_newer(bootstrap: str) -> None:
    """What a later version of this program would append."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        value = orjson.dumps({"type": "standfast.operations.v2", "sequence": 1})
        await producer.send_and_wait(OPERATIONS, value, b"acme/c", partition=STOPPED)


def on_others(bootstrap: str) -> int:
    """How many events the other partitions have."""
    return sum(record.partition != STOPPED for record in read(bootstrap, OPERATIONS))


def test_a_newer_event_stops_its_partition_alone(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Also after a restart; the worker says that it is not ready, and ends when it is asked to."""
    bootstrap, (port,) = empty_kafka.bootstrap, free_ports(1)
    make_topics(bootstrap)
    said = [dict(each) for each in seeded_stream(31, 200, CONVERSATIONS)]
    store, settings = tmp_path / "one.duckdb", {"STANDFAST_WORKER_LISTEN_PORT": str(port)}
    with running_worker(bootstrap, store, **settings) as worker:
        asyncio.run(write_newer(bootstrap))
        wait_until(lambda: b"partition_stopped" in store.with_suffix(".log").read_bytes())
        say(bootstrap, said[:100])
        _wait_for_others(bootstrap, said[:100])
        assert get(f"http://127.0.0.1:{port}/readyz")[0] == 503
        assert get(f"http://127.0.0.1:{port}/livez")[0] == 200
        assert stop(worker) == 0
    with running_worker(bootstrap, tmp_path / "two.duckdb", **settings) as worker:
        say(bootstrap, said[100:])
        _wait_for_others(bootstrap, said)
        assert get(f"http://127.0.0.1:{port}/readyz")[0] == 503
        assert stop(worker) == 0
    assert sum(record.partition == STOPPED for record in read(bootstrap, OPERATIONS)) == 1


def _wait_for_others(bootstrap: str, said: list[dict[str, object]]) -> None:
    """Until every utterance of the other partitions is in the log, but for those that repeat."""
    ids = {
        (each["tenant_id"], each["conversation_id"], each["utterance_id"])
        for each in said
        if partition_of(f"{each['tenant_id']}/{each['conversation_id']}".encode(), PARTITIONS)
        != STOPPED
    }
    wait_until(
        lambda: on_others(bootstrap) >= len(ids), told=lambda: (on_others(bootstrap), len(ids))
    )
