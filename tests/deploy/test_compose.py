"""The compose file: what its engine would do with it, as far as that can be told without one."""

from __future__ import annotations

import re
from typing import Any

import click
import pytest
import yaml

from tests.deploy.dockerfile import read_dockerfile
from tests.deploy.product import check_settings, is_setting, parse
from tests.deploy.software import DEPLOY, python_tool, ran
from tests.project.sources import pyproject

COMPOSE = DEPLOY / "compose.yaml"
SERVICES: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
VERSION = pyproject()["project"]["version"]
OURS = {name: each for name, each in SERVICES.items() if each["image"].startswith("standfast:")}
WORKERS = {name: each for name, each in OURS.items() if each["command"][0] == "worker"}
LAST_STAGE = read_dockerfile(DEPLOY / "Dockerfile")[-1]


@pytest.mark.deploy
def test_it_is_what_the_specification_of_compose_files_allows() -> None:
    """By the schema of compose files; a service with another key is refused."""
    tool = (python_tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec")
    said = ran(*tool, COMPOSE)
    assert said.returncode == 0, said.stdout
    wrong = COMPOSE.read_text().replace("depends_on:", "depends-on:", 1)
    assert ran(*tool, "-", given=wrong).returncode != 0


def test_its_services_are_those_of_the_pipeline() -> None:
    """Kafka, a job for the topics, two workers, an archive, Prometheus, Grafana."""
    assert set(OURS) == {"topics", "worker-1", "worker-2", "archive"}
    assert set(SERVICES) - set(OURS) == {"kafka", "prometheus", "grafana"}
    assert {each["image"] for each in OURS.values()} == {f"standfast:{VERSION}"}
    assert all(re.search(r":v?\d+\.\d+\.\d+$", each["image"]) for each in SERVICES.values())


def test_kafka_is_the_version_that_the_tests_run_on() -> None:
    """The tag of its image is the version of the fetched one."""
    pom = (DEPLOY / "kafka" / "pom.xml").read_text()
    version = re.search(r"<kafka.version>(.+)</kafka.version>", pom)
    assert version
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{version[1]}"


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_one(name: str) -> None:
    """The command line of each service parses with the product's own; a wrong option would not."""
    parse(OURS[name]["command"])
    with pytest.raises(click.UsageError):
        parse([*OURS[name]["command"], "--nonsense"])


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name: str) -> None:
    """And together they are settings that the product takes."""
    variables = {**LAST_STAGE.environment(), **OURS[name]["environment"]}
    ours = {key: value for key, value in variables.items() if key.startswith("STANDFAST_")}
    assert [key for key in ours if not is_setting(key)] == []
    check_settings(ours)


def test_workers_know_each_other() -> None:
    """Each has an address and a name of its own, and all are peers."""
    settings = {name: check_settings(each["environment"]) for name, each in WORKERS.items()}
    assert {name: each.instance for name, each in settings.items()} == {n: n for n in WORKERS}
    port = LAST_STAGE.environment()["STANDFAST_WORKER_LISTEN_PORT"]
    addresses = {name: f"http://{name}:{port}" for name in WORKERS}
    assert {name: each.canonical_url for name, each in settings.items()} == addresses
    assert {each.peers for each in settings.values()} == {frozenset(addresses.values())}


def test_ours_are_read_only_but_for_a_volume_of_their_own() -> None:
    """Without rights; what is written lies in the image's volume; the stop waits for the drain."""
    (volume,) = LAST_STAGE.one("VOLUME").words()
    own = []
    for each in OURS.values():
        assert each["read_only"]
        assert each["cap_drop"] == ["ALL"]
        own += [mount.split(":")[0] for mount in each.get("volumes", ()) if f":{volume}" in mount]
        drained = check_settings(each["environment"]).drain_seconds_max
        assert int(each["stop_grace_period"].removesuffix("s")) >= drained + 10
    assert len(own) == len(set(own)) == len(OURS) - 1  # the job writes nothing


def test_ports_agree_with_what_is_scraped() -> None:
    """Every worker and the archive are scraped where they listen, and nothing else is."""
    port = LAST_STAGE.environment()["STANDFAST_WORKER_LISTEN_PORT"]
    archive = parse(OURS["archive"]["command"])
    assert (str(archive["port"]), archive["host"]) == (port, "0.0.0.0")
    assert LAST_STAGE.environment()["STANDFAST_WORKER_LISTEN_HOST"] == "0.0.0.0"
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text())
    targets = {
        target
        for job in scraped["scrape_configs"]
        for each in job["static_configs"]
        for target in each["targets"]
    }
    assert targets == {f"{name}:{port}" for name in [*WORKERS, "archive"]}
    for name in [*WORKERS, "archive"]:
        assert [each.rpartition(":")[2] for each in OURS[name]["ports"]] == [port]


def test_what_is_mounted_is_there() -> None:
    """Folders alone, in which a file can get another's name and is seen; ports are local."""
    for each in SERVICES.values():
        for mount in each.get("volumes", ()):
            source = mount.split(":")[0]
            assert not source.startswith(".") or (DEPLOY / source).is_dir(), mount
        assert all(port.startswith("127.0.0.1:") for port in each.get("ports", ()))
