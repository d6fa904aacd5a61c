"""The image: what its Dockerfile promises, and its commands in the layout that it builds."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from processor.app.settings import WorkerSettings, worker_settings
from processor.scenarios import scenario_bytes
from tests.deploy.dockerfile import Stage, health_command, read_dockerfile
from tests.deploy.image import Image
from tests.deploy.software import DEPLOY, ROOT, python_tool, ran
from tests.kafka.cluster import free_ports
from tests.project.sources import pyproject

pytestmark = pytest.mark.xdist_group("deploy_image")

DOCKERFILE = DEPLOY / "Dockerfile"
START_SECONDS_MAX = 120


@pytest.fixture(scope="module")
def last() -> Stage:
    """The stage that becomes the image."""
    return read_dockerfile(DOCKERFILE)[-1]


@pytest.mark.deploy
def test_the_linter_has_nothing_to_say() -> None:
    """Not even for style."""
    said = ran(python_tool("hadolint"), "--failure-threshold", "style", DOCKERFILE)
    assert (said.returncode, said.stdout) == (0, "")


@pytest.mark.deploy
def test_the_linter_can_complain() -> None:
    """A Dockerfile that runs as root from any base is refused."""
    said = ran(python_tool("hadolint"), "-", given="FROM python\nRUN sudo true\nCMD true\n")
    assert said.returncode != 0
    assert "DL3006" in said.stdout


def test_every_stage_begins_with_the_same_base_of_a_python_that_fits() -> None:
    """It is pinned by its tag, and slim."""
    bases = {stage.base for stage in read_dockerfile(DOCKERFILE)}
    (base,) = bases
    version = re.fullmatch(r"python:3\.(\d+)-slim-[a-z]+", base)
    assert version
    least = re.fullmatch(r">=3\.(\d+)", pyproject()["project"]["requires-python"])
    assert least
    assert int(version[1]) >= int(least[1])


def test_it_starts_without_a_shell_and_without_rights(last: Stage) -> None:
    """A numeric user, JSON forms, one volume that holds all that is written."""
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", last.one("USER").rest)
    assert last.one("ENTRYPOINT").words() == ["standfast"]
    assert last.one("CMD").words() == ["worker"]
    assert health_command(last)[0] == "standfast"
    (volume,) = last.one("VOLUME").words()
    variables = last.environment()
    assert last.one("WORKDIR").rest == variables["HOME"] == variables["TMPDIR"] == volume
    assert Path(variables["STANDFAST_WORKER_STORE"]).parent == Path(volume)
    assert last.one("EXPOSE").rest == variables["STANDFAST_WORKER_LISTEN_PORT"]


def test_its_variables_are_settings(last: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that names a setting is one, with a value that it takes."""
    named = {k: v for k, v in last.environment().items() if k.startswith("STANDFAST_")}
    for name, value in named.items():
        assert name.removeprefix("STANDFAST_WORKER_").lower() in WorkerSettings.model_fields
        monkeypatch.setenv(name, value)
    settings = worker_settings({})
    assert str(settings.store) == named["STANDFAST_WORKER_STORE"]


def test_all_that_is_copied_reaches_the_builder() -> None:
    """What .dockerignore lets through is what the stages copy, and is there."""
    let_through = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    copies = (each.rest.split() for each in read_dockerfile(DOCKERFILE)[0].all("COPY"))
    copied = {source.rstrip("/") for *sources, _ in copies for source in sources}
    assert copied == let_through
    assert all((ROOT / each).exists() for each in copied)


def test_what_the_wheel_is_built_from_is_copied() -> None:
    """Every package and file that the project's configuration names for it."""
    project, hatch = pyproject()["project"], pyproject()["tool"]["hatch"]["build"]
    needed = [*hatch["targets"]["wheel"]["packages"], project["readme"], *project["license-files"]]
    copies = (each.rest.split() for each in read_dockerfile(DOCKERFILE)[0].all("COPY"))
    copied = [source.rstrip("/") for source in chain.from_iterable(copies)]
    for name in [*needed, "pyproject.toml"]:
        assert any(fnmatch.fnmatch(name, each) for each in copied), name


@contextmanager
def started(image: Image, *arguments: str, **settings: str) -> Iterator[subprocess.Popen[str]]:
    """A container, as it were; it must end well when it is asked to."""
    command, environment = image.command(*arguments, **settings)
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        _, complaint = process.communicate(timeout=START_SECONDS_MAX)
        assert process.returncode == 0, complaint[-2_000:]
    finally:
        process.kill()
        process.wait()


def wait_until_alive(process: subprocess.Popen[str], port: int) -> None:
    """Return when /livez answers with 200."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(f"http://127.0.0.1:{port}/livez", timeout=10) as answer:
                assert answer.status == 200
                return
        except URLError:
            time.sleep(0.2)
    process.kill()
    raise AssertionError(process.communicate()[1][-2_000:])


def test_the_image_does_its_work(image: Image) -> None:
    """As a user without rights on a read-only file system, with nothing but its volume."""
    _has_only_what_is_locked(image)
    _serves_and_is_seen_to_live(image)
    _runs_and_audits(image)
    _writes_nowhere_else(image)
    _serves_what_it_may_only_read(image)


def _has_only_what_is_locked(image: Image) -> None:
    """Every package that is installed stands in the lock, with that version, and no tool else."""
    lock = (DEPLOY / "runtime.lock").read_text()
    locked = set(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", lock, re.MULTILINE))
    (packages,) = (image.layout / "opt" / "standfast" / "lib").glob("python3.*/site-packages")
    installed = {
        name.replace("_", "-").lower(): version
        for folder in packages.glob("*.dist-info")
        for name, version in [folder.name.removesuffix(".dist-info").rsplit("-", 1)]
    }
    assert installed.pop("standfast") == pyproject()["project"]["version"]
    assert set(installed.items()) <= locked
    assert not {"pytest", "pip", "mypy"} & set(installed)


def _serves_and_is_seen_to_live(image: Image) -> None:
    """The start command reaches /livez, and the health check says so."""
    (port,) = map(str, free_ports(1))
    arguments = [*image.stage.one("CMD").words(), "--embedded-broker"]
    before = image.health(STANDFAST_WORKER_LISTEN_PORT=port)
    with started(image, *arguments, STANDFAST_WORKER_LISTEN_PORT=port) as process:
        wait_until_alive(process, int(port))
        alive = image.health(STANDFAST_WORKER_LISTEN_PORT=port)
        owner = os.stat(image.volume / "worker.duckdb").st_uid
    assert before.returncode == 1
    assert (alive.returncode, alive.stderr) == (0, "")
    assert str(owner) == image.stage.one("USER").rest.partition(":")[0]


def _runs_and_audits(image: Image) -> None:
    """`run` on a file in the volume, `replay audit` of what it wrote."""
    (image.volume / "incident.jsonl").write_bytes(scenario_bytes("incident"))
    for arguments in (
        ("run", "incident.jsonl", "--out", "out"),
        ("replay", "audit", "--db", "out/standfast.duckdb"),
    ):
        done = image.run(*arguments)
        assert done.returncode == 0, done.stderr


def _writes_nowhere_else(image: Image) -> None:
    """Outside the volume the answer is one line and status 2."""
    for outside in ("/opt/standfast/out", "/out"):
        refused = image.run("run", "incident.jsonl", "--out", outside)
        assert refused.returncode == 2
        assert refused.stderr.count("\n") == 1


def _serves_what_it_may_only_read(image: Image) -> None:
    """A store in a folder that it cannot write to, as on a claim that is mounted read-only."""
    claim = image.layout / "opt" / "claim"
    claim.mkdir()
    shutil.copy(image.volume / "out" / "standfast.duckdb", claim)
    (port,) = free_ports(1)
    arguments = ("--db", "/opt/claim/standfast.duckdb", "--port", str(port))
    with started(image, "serve", *arguments) as process:
        wait_until_alive(process, port)
        address = f"http://127.0.0.1:{port}/v1/tenants/default/conversations"
        with urlopen(address, timeout=60) as answer:
            assert "incident" in answer.read().decode()
