"""The access that the runbook gives to each part is enough for its work, and for no other's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from processor.app.settings import KAFKA_PREFIX
from processor.app.topics import Layout
from processor.scenarios import scenario_bytes
from tests.cli.test_commands import standfast
from tests.deploy.software import DEPLOY
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import StartKafka
from tests.kafka.security import Security
from tests.pipeline.workers import running_worker

TENANT, WORD = "acme", "a-secret-of-the-tests"
TOPICS = [name for name, _ in Layout(tenants=(TENANT,)).topics()]
WHO = {
    "a pipeline that says utterances": "pipeline",
    "the workers": "worker",
    "the archive": "archive",
    "the topics job": "topics",
    "`dead-letters requeue`, `archive restore`": "restore",
    "a tenant": TENANT,
}
"""The rows of the table, and who stands for each in this test."""
OPERATIONS = {
    "Create": AclOperation.CREATE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "IdempotentWrite": AclOperation.IDEMPOTENT_WRITE,
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
}


def rows() -> dict[str, tuple[str, str, str]]:
    """The table of the runbook: what each may do with topics, groups and the cluster."""
    text = (DEPLOY / "README.md").read_text()
    table = text.partition("| who | topics | groups | cluster |\n|---|---|---|---|\n")[2]
    cells = re.findall(
        r"^\| (.+) \| (.+) \| (.+) \| (.+) \|$", table.split("\n\n")[0], re.MULTILINE
    )
    return {who: (topics, groups, cluster) for who, topics, groups, cluster in cells}


def bindings() -> Iterator[AclBinding]:
    """The table as Kafka takes it."""
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    for who, (topics, groups, cluster) in rows().items():
        user = WHO[who]
        given, _, on = topics.partition(" on ")
        named = re.findall(r"`(.+)`", on.replace("TENANT", TENANT))
        for name in named or TOPICS:
            for operation in given.split(", "):
                yield _binding(ResourceType.TOPIC, name, literal, user, operation)
        if (group := re.fullmatch(r"Read on `(\w+)`.*", groups)) is not None:
            yield _binding(ResourceType.GROUP, group[1], literal, user, "Read")
        elif groups != "none":
            yield _binding(ResourceType.GROUP, f"{TENANT}-", prefixed, user, "Read")
        if cluster != "none":
            yield _binding(ResourceType.BROKER, "kafka-cluster", literal, user, cluster)


def _binding(
    kind: ResourceType, name: str, pattern: ResourcePatternType, user: str, operation: str
) -> AclBinding:
    allowed = AclPermissionType.ALLOW
    return AclBinding(kind, name, pattern, f"User:{user}", "*", OPERATIONS[operation], allowed)


@pytest.fixture
def guarded(start_kafka: StartKafka) -> Kafka:
    """A broker that lets everybody do what the table says, and nothing else."""
    users = dict.fromkeys(["admin", *WHO.values()], WORD)
    kafka = start_kafka(
        security=Security("SASL_PLAINTEXT", users=users),
        settings={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:ANONYMOUS",
        },
    )
    admin = AdminClient(
        {
            "bootstrap.servers": kafka.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": WORD,
        }
    )
    for created in admin.create_acls(list(bindings())).values():
        created.result(60)
    return kafka


def as_(monkeypatch: pytest.MonkeyPatch, kafka: Kafka, user: str) -> dict[str, str]:
    """Be that user from here on; the environment that says so."""
    names = {"BOOTSTRAP": kafka.bootstrap, "SECURITY_PROTOCOL": "SASL_PLAINTEXT"}
    settings = {f"{KAFKA_PREFIX}{name}": value for name, value in names.items()}
    settings |= {f"{KAFKA_PREFIX}USERNAME": user, f"{KAFKA_PREFIX}PASSWORD": WORD}
    for name in [name for name in os.environ if name.startswith(KAFKA_PREFIX)]:
        monkeypatch.delenv(name)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return settings


def test_the_table_is_whole() -> None:
    """Each of its rows is tried here."""
    assert rows().keys() == WHO.keys()


def test_each_can_do_its_work_and_a_tenant_sees_its_alerts_alone(
    guarded: Kafka, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Topics, utterances, a worker, an alert, an archive; what is not the tenant's is refused."""

    def does(user: str, *arguments: str | Path, given: bytes = b"", status: int = 0) -> bytes:
        as_(monkeypatch, guarded, user)
        ran = standfast(*arguments, given=given)
        assert ran.returncode == status, (arguments, ran.stderr)
        return ran.stdout if status == 0 else ran.stderr

    layout = ("--replication", "1", "--partitions", "2", "--tenant", TENANT)
    does("topics", "topics", "create", *layout)
    does("topics", "topics", "check", *layout)
    lines = [
        orjson.dumps({**orjson.loads(line), "tenant_id": TENANT})
        for line in scenario_bytes("incident-with-candidates").splitlines()
    ]
    does("pipeline", "produce", "-", given=b"\n".join(lines) + b"\n")
    environment = as_(monkeypatch, guarded, "worker")
    settings = {**environment, "STANDFAST_WORKER_ALERT_TENANTS": f'["{TENANT}"]'}
    alerts = f"ungrounded-alerts.{TENANT}"
    first = ("--from-beginning", "--max", "1", "--json")
    with running_worker(guarded.bootstrap, tmp_path / "worker.duckdb", **settings):
        alert = orjson.loads(does(TENANT, "tail", alerts, *first))
    assert alert["type"] == "standfast.ungrounded_alert.v1"
    does("archive", "archive", "--until-end", "--db", tmp_path / "archive.duckdb")
    refused = does(TENANT, "tail", "utterances", *first, status=2)
    assert refused.count(b"\n") == 1
    refused = does(TENANT, "produce", "-", given=lines[0] + b"\n", status=2)
    assert refused.count(b"\n") == 1
