"""Utterances go from a file to their topic, and what is on a topic can be watched."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaProducer

from processor.app.partitions import partition_of
from processor.app.settings import kafka_settings
from processor.app.tail import Message, Selection, tail
from processor.app.topics import Layout, create
from processor.scenarios import scenario_bytes
from schemas.contract import UTTERANCE_BYTES_MAX
from schemas.wire import decode_utterance
from tests.cli.test_commands import standfast
from tests.kafka.cluster import Kafka

PARTITIONS = 5
SECONDS_MAX = 120


@pytest.fixture
def bootstrap(empty_kafka: Kafka) -> str:
    """The shared broker with our topics, all of them empty."""
    done = asyncio.run(create(kafka_settings(empty_kafka.bootstrap), Layout(PARTITIONS, 1)))
    assert done.mismatches == ()
    return empty_kafka.bootstrap


def utterance(conversation: str, number: int, tenant: str = "default", **more: object) -> bytes:
    """One line of input."""
    fields = {
        "tenant_id": tenant,
        "conversation_id": conversation,
        "utterance_id": f"u{number}",
        "speaker": "ann",
        "at": "2026-03-01T03:31:00+01:00",
        **more,
    }
    return orjson.dumps(fields)


async def messages(bootstrap: str, topic: str, count: int) -> list[Message]:
    """The first `count` messages of a topic."""
    found: list[Message] = []
    stopped = asyncio.Event()
    async with asyncio.timeout(SECONDS_MAX):
        everything = Selection(from_beginning=True)
        async for message in tail(kafka_settings(bootstrap), topic, everything, stopped):
            found.append(message)
            if len(found) == count:
                stopped.set()
    return found


async def send(bootstrap: str, topic: str, *records: dict[str, Any]) -> None:
    """Put records on a topic as they are."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for record in records:
            await producer.send_and_wait(topic, **record)


def told(bootstrap: str, topic: str, count: int, *options: str) -> list[Any]:
    """The first `count` lines of `tail --json`."""
    ran = standfast(
        *("tail", topic, "--bootstrap", bootstrap, "--json", "--from-beginning"),
        *("--max", str(count), *options),
    )
    assert ran.returncode == 0, ran.stderr
    return [orjson.loads(line) for line in ran.stdout.splitlines()]


def test_a_scenario_arrives_whole_in_order_and_as_it_was_written(bootstrap: str) -> None:
    """Value, key, partition and headers of each utterance of a conversation."""
    lines = scenario_bytes("incident").splitlines()
    ran = standfast("produce", "-", "--bootstrap", bootstrap, given=b"\n".join(lines))
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.decode() == f"{len(lines)} utterances sent to utterances\n"
    arrived = asyncio.run(messages(bootstrap, "utterances", len(lines)))
    assert [message.value for message in arrived] == lines
    assert {message.key for message in arrived} == {b"default/incident"}
    assert {message.partition for message in arrived} == {
        partition_of(b"default/incident", PARTITIONS)
    }
    for message, line in zip(arrived, lines, strict=True):
        said = decode_utterance(line)
        assert dict(message.headers) == {
            "ce_specversion": b"1.0",
            "ce_id": said.utterance_id.encode(),
            "ce_source": b"/conversations/default/incident",
            "ce_type": b"standfast.utterance.v1",
            "ce_time": said.at.isoformat().replace("+00:00", "Z").encode(),
            "ce_subject": b"default/incident",
            "content-type": b"application/json",
        }


def test_every_conversation_lies_where_other_clients_put_it(bootstrap: str) -> None:
    """The client librdkafka, told to use Java's hash, chooses the same partitions."""
    from confluent_kafka import Producer

    keys = [b"tenant-%d/conversation-%d" % (n % 7, n) for n in range(60)]
    lines = [utterance(f"conversation-{n}", n, f"tenant-{n % 7}") for n in range(60)]
    ran = standfast("produce", "-", "--bootstrap", bootstrap, given=b"\n".join(lines))
    assert ran.returncode == 0, ran.stderr
    ours = asyncio.run(messages(bootstrap, "utterances", 60))
    other = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    placed: dict[bytes, int] = {}
    for key in keys:
        other.produce(
            *("verdicts", b"{}", key),
            on_delivery=lambda _, message: placed.update({message.key(): message.partition()}),
        )
    other.flush(30)
    assert {message.key: message.partition for message in ours} == placed
    assert len(set(placed.values())) == PARTITIONS


def test_a_bad_line_is_reported_and_the_rest_is_sent(bootstrap: str, tmp_path: Path) -> None:
    """File, line and field of the first bad line, how many more, and status 2."""
    source = tmp_path / "in.jsonl"
    good = [utterance("c", number) for number in range(3)]
    too_long = b'{"text": "' + b"x" * UTTERANCE_BYTES_MAX + b'"}'
    bad = utterance("c", 9, at="2026-03-01T02:31:00")
    source.write_bytes(b"\n".join([good[0], b"", bad, good[1], b"\xff", too_long, good[2]]))
    ran = standfast("produce", source, "--bootstrap", bootstrap, "--json")
    assert ran.returncode == 2
    assert orjson.loads(ran.stdout) == {"topic": "utterances", "sent": 3, "bad_lines": 3}
    (line,) = ran.stderr.decode().splitlines()
    assert line.startswith(f"standfast: {source}:3: at: ")
    assert line.endswith("(and 2 more bad lines)")
    arrived = asyncio.run(messages(bootstrap, "utterances", 3))
    assert [message.value for message in arrived] == good


def test_the_longest_line_that_is_allowed_is_sent(bootstrap: str) -> None:
    """An utterance of exactly the limit fits into the topic with its key and headers."""
    operations = [
        {"op": "observe", "record": f"o{number}", "claim": "x" * 8_000} for number in range(128)
    ]
    line = utterance("c" * 128, 1, "t" * 64, operations=operations)
    line += b" " * (UTTERANCE_BYTES_MAX - len(line))
    assert len(line) == UTTERANCE_BYTES_MAX
    ran = standfast("produce", "-", "--bootstrap", bootstrap, given=line + b"\n")
    assert (ran.returncode, ran.stderr) == (0, b"")
    (arrived,) = asyncio.run(messages(bootstrap, "utterances", 1))
    assert arrived.value == line


def test_without_the_topic_it_says_what_to_run(empty_kafka: Kafka) -> None:
    """Producing and tailing before the topics exist is one line, and creates none of them."""
    for command in (("produce", "-"), ("tail", "utterances"), ("tail", "no-such-topic")):
        ran = standfast(*command, "--bootstrap", empty_kafka.bootstrap, given=utterance("c", 1))
        assert ran.returncode == 2
        (line,) = ran.stderr.decode().splitlines()
        assert "there is no topic" in line
        assert "standfast topics create" in line


def test_tail_selects_a_tenant_and_a_conversation(bootstrap: str) -> None:
    """Only what was asked for is shown, whatever else lies on the same partition."""
    lines = [
        utterance(f"c{number % 4}", number, tenant)
        for number in range(16)
        for tenant in ("acme", "ac", "other")
    ]
    given = b"\n".join(lines)
    assert standfast("produce", "-", "--bootstrap", bootstrap, given=given).returncode == 0
    both = told(bootstrap, "utterances", 4, "--tenant", "ac", "--conversation", "c1")
    assert [event["data"]["utterance_id"] for event in both] == ["u1", "u5", "u9", "u13"]
    assert {event["data"]["tenant_id"] for event in both} == {"ac"}
    tenant = told(bootstrap, "utterances", 16, "--tenant", "acme")
    assert {event["data"]["tenant_id"] for event in tenant} == {"acme"}
    conversation = told(bootstrap, "utterances", 12, "--conversation", "c2")
    assert {event["data"]["conversation_id"] for event in conversation} == {"c2"}
    assert {event["type"] for event in tenant} == {"standfast.utterance.v1"}


def test_tail_shows_what_is_no_event_as_it_is(bootstrap: str) -> None:
    """Undecodable bytes and tombstones are shown with their place; a type may be the topic's."""
    key = b"default/c"
    asyncio.run(
        send(
            *(bootstrap, "dead-letters"),
            {"key": key, "value": b"\xff\x00", "headers": [("reason", b"bad\x1b[2J")]},
            {"key": key, "value": b"{text}"},
            {"key": key, "value": None},
        )
    )
    bytes_, text, tombstone = told(bootstrap, "dead-letters", 3)
    assert bytes_["type"] is None
    assert bytes_["data"]["original_base64"] == "/wA="
    assert bytes_["data"]["headers"] == {"reason": "bad\x1b[2J"}
    assert bytes_["data"]["key"] == "default/c"
    assert text["data"]["original"] == "{text}"
    assert (text["data"]["offset"], tombstone["data"]["original"]) == (1, None)
    asyncio.run(send(bootstrap, "verdicts", {"key": key, "value": b'{"turn": 1}'}))
    assert told(bootstrap, "verdicts", 1) == [{"type": "standfast.verdict.v1", "data": {"turn": 1}}]
    shown = standfast(
        *("tail", "dead-letters", "--bootstrap", bootstrap, "--from-beginning", "--max", "3")
    )
    assert shown.returncode == 0
    assert len(shown.stdout.splitlines()) == 3
    assert b"\x1b" not in shown.stdout


@pytest.fixture
def watching(bootstrap: str) -> Iterator[subprocess.Popen[bytes]]:
    """`standfast tail utterances`, from now on."""
    command = [sys.executable, "-m", "processor.cli.main", "tail", "utterances", "--json"]
    with subprocess.Popen(
        [*command, "--bootstrap", bootstrap], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_tail_follows_until_it_is_interrupted(
    bootstrap: str, watching: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    """What comes after the start is shown at once, and a signal ends it with status 0."""
    assert watching.stdout is not None
    assert watching.stderr is not None
    shown = asyncio.run(_first_line_shown(bootstrap, watching))
    assert orjson.loads(shown)["data"]["conversation_id"] == "c"
    watching.send_signal(number)
    assert watching.wait(SECONDS_MAX) == 0
    assert watching.stderr.read() == b""


async def _first_line_shown(bootstrap: str, watching: subprocess.Popen[bytes]) -> bytes:
    """Send until something is shown: when it began to watch cannot be seen from outside."""
    assert watching.stdout is not None
    shown = asyncio.create_task(asyncio.to_thread(watching.stdout.readline))
    number = 0
    async with asyncio.timeout(SECONDS_MAX):
        while not shown.done():
            number += 1
            record = {"key": b"default/c", "value": utterance("c", number)}
            await send(bootstrap, "utterances", record)
            await asyncio.sleep(0.2)
    return await shown


def test_produce_interrupted_in_its_wait_keeps_what_was_typed(bootstrap: str) -> None:
    """Lines typed before the signal have arrived; it says how many, and by what it was stopped."""
    command = [sys.executable, "-m", "processor.cli.main", "produce", "-"]
    with subprocess.Popen(
        [*command, "--bootstrap", bootstrap],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(utterance("c", 1) + b"\n" + utterance("c", 2) + b"\n")
        process.stdin.flush()
        assert len(asyncio.run(messages(bootstrap, "utterances", 2))) == 2
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS_MAX) == 128 + signal.SIGINT
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() == b"2 utterances sent to utterances\n"
        assert process.stderr.read() == b"standfast: stopped by SIGINT\n"


def test_a_reader_of_tail_that_goes_away_ends_it(bootstrap: str) -> None:
    """`standfast tail ... | head -1` ends quietly."""
    given = b"\n".join(utterance("c", number) for number in range(500))
    assert standfast("produce", "-", "--bootstrap", bootstrap, given=given).returncode == 0
    program = f"{sys.executable} -m processor.cli.main tail utterances --from-beginning"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{program} --bootstrap {bootstrap} | head -1"],
        capture_output=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert len(ran.stdout.splitlines()) == 1
