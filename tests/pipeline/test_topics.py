"""The topics on the brokers are as `schemas.topics` says, or each difference is reported."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from processor.app.settings import kafka_settings
from processor.app.topics import Layout, Mismatch, check, create
from schemas.topics import BY_NAME, TOPICS
from tests.cli.test_commands import standfast
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import StartKafka

ONE = Layout(partitions=3, replication=1)
ADDRESSES = [topic.address for topic in TOPICS if not topic.per_tenant]


async def make(bootstrap: str, name: str, partitions: int = 3, **changed: str) -> None:
    """Create one topic by hand, with some settings other than ours."""
    ours = {setting: str(value) for setting, value in ONE.configuration(BY_NAME[name]).items()}
    configuration = ours | {setting.replace("_", "."): value for setting, value in changed.items()}
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=configuration)])
        while name not in await admin.list_topics():
            await asyncio.sleep(0.05)
    finally:
        await admin.close()


def test_what_was_created_passes_the_check(empty_kafka: Kafka) -> None:
    """All topics are made, in the order of the flow; a second time there is nothing to do."""
    settings = kafka_settings(empty_kafka.bootstrap)
    first = asyncio.run(create(settings, ONE))
    assert first == (tuple(ADDRESSES), ())
    assert asyncio.run(create(settings, ONE)) == ((), ())
    assert asyncio.run(check(settings, ONE)) == ()
    assert asyncio.run(check(settings, Layout(replication=1))) == ()


def test_the_settings_arrive_on_the_broker(empty_kafka: Kafka) -> None:
    """Seen through Kafka's own client: clean-up, retention and size of the topics that matter."""
    asyncio.run(create(kafka_settings(empty_kafka.bootstrap), ONE))
    seen = configurations(empty_kafka.bootstrap, ADDRESSES)
    assert seen["operations"]["cleanup.policy"] == "delete"
    assert seen["operations"]["retention.ms"] == "-1"
    assert seen["operations"]["retention.bytes"] == "-1"
    assert seen["utterances"]["cleanup.policy"] == "delete"
    assert seen["snapshots"]["cleanup.policy"] == "compact"
    sizes = {name: int(settings["max.message.bytes"]) for name, settings in seen.items()}
    assert sizes["dead-letters"] > sizes["utterances"] > 1_048_576


def configurations(bootstrap: str, names: list[str]) -> dict[str, dict[str, str]]:
    """The settings of topics, read with librdkafka."""
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names])
    return {
        resource.name: {name: entry.value for name, entry in answer.result(30).items()}
        for resource, answer in asked.items()
    }


def test_every_mismatch_is_reported(empty_kafka: Kafka) -> None:
    """Each wrong setting of each topic, with what it is and what it should be."""
    bootstrap = empty_kafka.bootstrap
    asyncio.run(make(bootstrap, "utterances", max_message_bytes="4194304"))
    asyncio.run(make(bootstrap, "operations", cleanup_policy="compact", retention_ms="1000"))
    asyncio.run(make(bootstrap, "verdicts", partitions=2, retention_bytes="5000000"))
    asyncio.run(make(bootstrap, "retraction-impacts"))
    asyncio.run(make(bootstrap, "ungrounded-alerts"))
    asyncio.run(make(bootstrap, "context-updates", retention_ms="-1"))
    asyncio.run(make(bootstrap, "dead-letters"))
    found = asyncio.run(check(kafka_settings(bootstrap), Layout(replication=2)))
    counts = [one for one in found if one.setting not in ("replication", "min.insync.replicas")]
    assert counts == [
        Mismatch("utterances", "max.message.bytes", "4194304", "1114112"),
        Mismatch("operations", "cleanup.policy", "compact", "delete"),
        Mismatch("operations", "retention.ms", "1000", "unlimited"),
        Mismatch("verdicts", "partitions", "2", "3"),
        Mismatch("verdicts", "retention.bytes", "5000000", "unlimited"),
        Mismatch("snapshots", "topic", "missing", "there"),
        Mismatch("keys", "topic", "missing", "there"),
    ]
    assert Mismatch("operations", "replication", "1", "at least 2") in found
    assert Mismatch("operations", "min.insync.replicas", "1", "at least 2") in found


def test_nothing_is_created_beside_topics_that_do_not_fit(empty_kafka: Kafka) -> None:
    """What exists is reported and left alone, and no topic is added that would not fit to it."""
    settings = kafka_settings(empty_kafka.bootstrap)
    asyncio.run(make(empty_kafka.bootstrap, "operations", partitions=5))
    done = asyncio.run(create(settings, ONE))
    assert done == ((), (Mismatch("operations", "partitions", "5", "3"),))
    assert len(asyncio.run(check(settings, ONE))) == len(ADDRESSES)
    done = asyncio.run(create(settings, Layout(replication=1)))
    assert len(done.created) == len(ADDRESSES) - 1
    assert asyncio.run(check(settings, Layout(partitions=5, replication=1))) == ()


def test_a_tenant_that_asks_has_its_own_alerts(empty_kafka: Kafka) -> None:
    """The topic of a tenant's alerts is made, and missed, only where it is asked for."""
    settings = kafka_settings(empty_kafka.bootstrap)
    asyncio.run(create(settings, ONE))
    asked = Layout(3, 1, ("acme",))
    name = "ungrounded-alerts.acme"
    assert asyncio.run(check(settings, asked)) == (Mismatch(name, "topic", "missing", "there"),)
    assert asyncio.run(create(settings, asked)) == ((name,), ())
    assert asyncio.run(check(settings, asked)) == ()


def test_three_brokers_hold_three_replicas(start_kafka: StartKafka) -> None:
    """Without further options the layout is the one for production."""
    settings = kafka_settings(start_kafka(3).bootstrap)
    done = asyncio.run(create(settings, Layout()))
    assert len(done.created) == len(ADDRESSES)
    assert done.mismatches == ()
    seen = configurations(settings.bootstrap, ["operations"])
    assert seen["operations"]["min.insync.replicas"] == "2"
    assert asyncio.run(check(settings, Layout(partitions=12, replication=3))) == ()


def test_the_commands_print_and_exit_as_they_should(empty_kafka: Kafka) -> None:
    """`create` says what it made, `check` prints one line per mismatch and exits with 1."""
    where = ("--bootstrap", empty_kafka.bootstrap, "--replication", "1")
    missing = standfast("topics", "check", *where)
    assert missing.returncode == 1
    assert missing.stdout.decode().splitlines() == [
        f"{name}: topic is missing, should be there" for name in ADDRESSES
    ]
    made = standfast("topics", "create", *where, "--partitions", "4", "--tenant", "acme", "--json")
    assert made.returncode == 0
    created = orjson.loads(made.stdout)
    assert created["mismatches"] == []
    assert set(created["created"]) == {*ADDRESSES, "ungrounded-alerts.acme"}
    assert standfast("topics", "check", *where).returncode == 0
    other = standfast("topics", "check", *where, "--partitions", "6", "--json")
    assert other.returncode == 1
    assert orjson.loads(other.stdout)["mismatches"][0] == {
        "topic": "utterances",
        "setting": "partitions",
        "actual": "4",
        "expected": "6",
    }
    assert not missing.stderr + made.stderr + other.stderr


def test_more_replicas_than_brokers_are_refused_in_one_line(empty_kafka: Kafka) -> None:
    """The broker's reason is passed on, with status 2."""
    ran = standfast("topics", "create", "--bootstrap", empty_kafka.bootstrap)
    assert ran.returncode == 2
    (line,) = ran.stderr.decode().splitlines()
    assert "topic utterances was not created" in line
    assert "eplication factor" in line


@pytest.mark.parametrize(
    "arguments",
    [("topics", "check"), ("topics", "create"), ("produce", "-"), ("tail", "utterances")],
    ids=" ".join,
)
def test_brokers_that_cannot_be_reached_are_one_line_and_status_2(
    arguments: tuple[str, ...],
) -> None:
    """Nobody listens: within seconds one line says where and why."""
    ran = standfast(*arguments, "--bootstrap", "127.0.0.1:1")
    assert ran.returncode == 2
    assert ran.stdout == b""
    (line,) = ran.stderr.decode().splitlines()
    assert line.startswith("standfast: 127.0.0.1:1: ")
    assert "Connect call failed" in line
