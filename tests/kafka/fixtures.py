"""Fixtures that give a broker to any test.

A test that uses `kafka`, `empty_kafka`, `start_kafka` or `s3` belongs to the group `kafka`: it
needs what `make kafka` fetches. A test that uses `broker` takes what there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from processor.app.embedded_broker import EmbeddedBroker
from tests.kafka.cluster import Kafka
from tests.kafka.s3_server import S3Server
from tests.kafka.software import KEPT_LOGS, missing


class StartKafka(Protocol):
    """What `start_kafka` gives: the arguments of `Kafka`, a running cluster back."""

    def __call__(self, brokers: int = 1, **options: Any) -> Kafka:
        """Start a cluster that ends with the test."""


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """One broker of Apache Kafka, shared by the whole run; others leave topics on it."""
    with Kafka() as cluster:
        yield cluster
        _keep_logs_of_failures(request, cluster)


@pytest.fixture
def empty_kafka(kafka: Kafka) -> Kafka:
    """The shared broker, with all topics of earlier tests deleted."""
    asyncio.run(delete_topics(kafka.bootstrap))
    return kafka


@pytest.fixture
def start_kafka(request: pytest.FixtureRequest) -> Iterator[StartKafka]:
    """Starts clusters of a test's own: `start_kafka(3)`, `start_kafka(security=Security(...))`."""
    running: list[Kafka] = []

    def start(brokers: int = 1, **options: Any) -> Kafka:
        cluster = Kafka(brokers, **options)
        running.append(cluster)
        cluster.start()
        return cluster

    yield start
    for cluster in running:
        _keep_logs_of_failures(request, cluster)
        cluster.close()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A service that speaks the S3 protocol, shared by the whole run; others leave objects."""
    with S3Server() as server:
        yield server


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a broker: Apache Kafka if it is here, else the embedded one."""
    if missing() is None:
        yield request.getfixturevalue("kafka").bootstrap
        return
    with EmbeddedBroker() as embedded:
        yield embedded.bootstrap


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say where the brokers' logs are, if something failed."""
    for folder in terminalreporter.config.stash.get(KEPT_LOGS, []):
        terminalreporter.line(f"logs of Apache Kafka: {folder}")


async def delete_topics(bootstrap: str) -> None:
    """Delete every topic but Kafka's own; groups lose their offsets with them."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        ours = [name for name in await admin.list_topics() if not name.startswith("__")]
        if ours:
            await admin.delete_topics(ours)
        while not set(ours).isdisjoint(await admin.list_topics()):
            await asyncio.sleep(0.05)
    finally:
        await admin.close()


def _keep_logs_of_failures(request: pytest.FixtureRequest, cluster: Kafka) -> None:
    if request.session.testsfailed:
        cluster.keep_logs = True
        request.config.stash.setdefault(KEPT_LOGS, []).append(str(cluster.logs))
