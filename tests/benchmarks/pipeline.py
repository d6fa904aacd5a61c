"""The pipeline's figures on Apache Kafka: `python -m tests.benchmarks.pipeline`.

As ratios in one run: utterances per second through one worker (and two), against two chained empty
Faust agents and a bare aiokafka loop; then the latency from utterance to verdict at half the
worker's rate. Subjects take turns, and each is measured from when a tenth is in the log, so that
what starting costs does not count; of several rounds the median does.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from processor.app.interpret import AlreadyInLog, Unusable, interpret
from processor.app.messages import OPERATIONS, UTTERANCES, derived_messages, log_message
from processor.app.partitions import partition_of
from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused
from processor.render.reduce import reduce
from schemas.wire import decode_utterance
from tests.kafka.cluster import Kafka
from tests.kafka.software import ROOT
from tests.pipeline.workers import make_topics, running_worker, say, wait_until_done

PARTITIONS = 8
CONVERSATIONS = 500
TENANTS = 20
SECONDS_MAX = 300.0


class Rate(NamedTuple):
    """How fast a subject was, and what an utterance cost it."""

    per_second: float
    cpu_ms: float


def utterances(count: int, conversations: int = CONVERSATIONS) -> Iterator[dict[str, Any]]:
    """One operation each; every tenth turn of a conversation is a candidate."""
    for number in range(count):
        turn, place = divmod(number, conversations)
        common = {
            "tenant_id": f"t{place % TENANTS}",
            "conversation_id": f"c{place}",
            "utterance_id": f"u{number}",
            "speaker": "ann",
            "text": "The pool was full before the retries began.",
            "at": "2026-03-01T02:31:00Z",
        }
        if turn % 10 == 9:
            claims = [{"text": "so", "record": f"r{turn - 1}"}]
            yield {**common, "kind": "candidate", "claims": claims}
        else:
            premises = [f"r{turn - 1}"] if turn % 10 else []
            said = {"op": "observe", "record": f"r{turn}", "claim": "c", "premises": premises}
            yield {**common, "operations": [said]}


async def _logged(bootstrap: str) -> int:
    """How many records the log has."""
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        places = [TopicPartition(OPERATIONS, each) for each in range(PARTITIONS)]
        consumer.assign(places)
        return sum((await consumer.end_offsets(places)).values())


def _wait_until_logged(bootstrap: str, least: int) -> int:
    """Until the log has so many records; how many it has then."""
    deadline = time.monotonic() + SECONDS_MAX
    while (logged := asyncio.run(_logged(bootstrap))) < least:
        assert time.monotonic() < deadline, f"{logged} of {least} in the log"
        time.sleep(0.05)
    return logged


@contextmanager
def subject(name: str, bootstrap: str, folder: Path) -> Iterator[list[int]]:
    """Run what is measured until the end of the block; its process ids."""
    ids: list[int] = []
    with ExitStack() as stack:
        if name in {"faust", "loop"}:
            command = [sys.executable, "-m", "tests.benchmarks.subjects", name, bootstrap]
            process = subprocess.Popen(command, cwd=ROOT, env={"PATH": ""})
            stack.callback(process.wait)
            stack.callback(process.kill)
            ids.append(process.pid)
        else:
            for number in range(int(name.removeprefix("worker"))):
                store = folder / f"{name}-{number}.duckdb"
                ids.append(stack.enter_context(running_worker(bootstrap, store)).pid)
        yield ids


def cpu_ms(process: int) -> float:
    """The processor time that a process has taken (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1_000


def rate(name: str, count: int, folder: Path) -> Rate:
    """From a tenth in the log to the last commit."""
    with Kafka() as kafka:
        make_topics(kafka.bootstrap, PARTITIONS)
        say(kafka.bootstrap, list(utterances(count)), PARTITIONS)
        with subject(name, kafka.bootstrap, folder) as processes:
            before = _wait_until_logged(kafka.bootstrap, count // 10)
            began, cpu = time.monotonic(), -sum(map(cpu_ms, processes))
            wait_until_done(kafka.bootstrap, SECONDS_MAX, PARTITIONS)
            seconds = time.monotonic() - began
            cpu += sum(map(cpu_ms, processes))
        return Rate((count - before) / seconds, cpu / (count - before))


def medians(names: Sequence[str], count: int, rounds: int) -> dict[str, Rate]:
    """Of each subject, over rounds in which they take turns."""
    found: dict[str, list[Rate]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                found[name].append(rate(name, count, Path(folder)))
            print(f"  round {number + 1}: {name} {found[name][-1].per_second:,.0f}/s", flush=True)
    return {
        name: Rate(*map(statistics.median, zip(*of, strict=True))) for name, of in found.items()
    }


def work_ms(count: int) -> float:
    """Processor time of what a worker does with an utterance, without Faust, broker and store.

    It is read, interpreted, written for the log, folded, and what is derived is written.
    """
    lines = [orjson.dumps(each) for each in utterances(count)]
    live: dict[str, Conversation] = {}
    began = time.process_time()
    for line in lines:
        said = decode_utterance(line)
        ids = (said.tenant_id, said.conversation_id)
        conversation = live.setdefault(said.conversation_id, Conversation.empty(*ids))
        event = interpret(conversation, said)
        assert not isinstance(event, (AlreadyInLog, Unusable))
        log_message(event, 0)
        derived = reduce(conversation, event)
        assert not isinstance(derived, Refused)
        derived_messages(derived, event.at, 0, frozenset())
    return (time.process_time() - began) / count * 1_000


async def _latencies(bootstrap: str, per_second: float, seconds: float) -> list[float]:
    """Milliseconds from sending a candidate to its verdict, while utterances come at a rate.

    As with rates, the first tenth does not count; nor does what this process would collect.
    """
    said = list(utterances(int(per_second * seconds), CONVERSATIONS // 10))
    sent_at: dict[str, float] = {}
    took: list[float] = []
    gc.collect()
    gc.disable()
    candidates = sum("claims" in each for each in said)

    async def listen(consumer: AIOKafkaConsumer) -> None:
        while len(took) < candidates:
            record = await consumer.getone()
            verdict = orjson.loads(record.value)
            took.append((time.perf_counter() - sent_at[verdict["candidate"]["utterance_id"]]) * 1e3)

    async with (
        AIOKafkaConsumer("verdicts", bootstrap_servers=bootstrap) as consumer,
        AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all") as producer,
    ):
        listening = asyncio.create_task(listen(consumer))
        start = time.perf_counter()
        for number, each in enumerate(said):
            ahead = start + number / per_second - time.perf_counter()
            if ahead > 0:
                await asyncio.sleep(ahead)
            key = f"{each['tenant_id']}/{each['conversation_id']}".encode()
            sent_at[each["utterance_id"]] = time.perf_counter()
            await producer.send(UTTERANCES, orjson.dumps(each), key, partition_of(key, PARTITIONS))
        await asyncio.wait_for(listening, 120)
    gc.enable()
    return took[len(took) // 10 :]


def latencies(per_second: float, seconds: float, folder: Path) -> list[float]:
    """The same, with a worker that has just started on empty topics."""
    with Kafka() as kafka, ExitStack() as stack:
        make_topics(kafka.bootstrap, PARTITIONS)
        stack.enter_context(running_worker(kafka.bootstrap, folder / "latency.duckdb"))
        return asyncio.run(_latencies(kafka.bootstrap, per_second, seconds))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--utterances", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency-seconds", type=float, default=20.0)
    parser.add_argument("--only", nargs="*", default=["faust", "worker1", "loop", "worker2"])
    options = parser.parse_args(arguments)
    rates = medians(options.only, options.utterances, options.rounds)
    base = rates.get("faust", Rate(float("nan"), float("nan")))
    print(f"{options.utterances:,} utterances, each with one operation or one claim")
    for each, found in rates.items():
        print(
            f"{each:>10} {found.per_second:10,.0f}/s"
            f"{found.per_second / base.per_second:8.2f} x two empty Faust agents"
            f"{found.cpu_ms * 1_000:10,.0f} us of processor time each"
            f"{base.cpu_ms / found.cpu_ms:8.2f} x theirs by that"
        )
    print(f"  the work alone, without Kafka: {work_ms(options.utterances) * 1_000:,.0f} us each")
    if "worker1" in rates and options.latency_seconds:
        half = rates["worker1"].per_second / 2
        with tempfile.TemporaryDirectory() as name:
            took = latencies(half, options.latency_seconds, Path(name))
        cuts = statistics.quantiles(took, n=100)
        print(
            f"utterance to verdict at {half:,.0f}/s: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms"
        )


if __name__ == "__main__":
    main()
