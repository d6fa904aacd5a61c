"""Chaos: three workers, twenty tenants, a model that is slow and fails, and kills -9."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.chaos import PARTITIONS, Plan, run
from tests.faults.oracle import Outcome, assert_nothing_lost
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import StartKafka
from tests.pipeline.workers import Place, expected


def places(outcome: Outcome, conversations: set[str]) -> list[Place]:
    """The log of some conversations, as a store shows it."""
    return sorted(
        Place(*key.split("/"), sequence, turn.digest, turn.state_digest)
        for key, turns in outcome.conversations.items()
        if key in conversations
        for sequence, turn in enumerate(turns, start=1)
    )


def assert_right(plan: Plan, kafka: Kafka, folder: Path) -> None:
    """Everything that was said came out once, in order, and as one process makes it."""
    said = run(plan, kafka, folder)
    outcome = assert_nothing_lost(kafka.bootstrap, PARTITIONS)
    native = [each for each in said if int(each["conversation_id"][1:]) % 2 == 0]
    keys = {f"{each['tenant_id']}/{each['conversation_id']}" for each in native}
    assert places(outcome, keys) == sorted(expected(native, folder).log)


def test_three_kills(empty_kafka: Kafka, tmp_path: Path) -> None:
    """8,000 utterances in 400 conversations; a worker dies every 20 seconds."""
    assert_right(Plan(utterances=8_000, conversations=400, kills=3), empty_kafka, tmp_path)


@pytest.mark.thorough
def test_ten_kills_a_broker_and_workers_that_come_and_go(
    start_kafka: StartKafka, tmp_path: Path
) -> None:
    """40,000 utterances in 2,000 conversations on three brokers, one of which is killed too."""
    plan = Plan(
        utterances=40_000,
        conversations=2_000,
        kills=10,
        replication=3,
        restart_broker=True,
        change_workers=True,
    )
    assert_right(plan, start_kafka(3), tmp_path)
