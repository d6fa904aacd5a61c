"""The wheel outside the checkout, in a new environment with its locked dependencies alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from processor.scenarios import scenario_bytes
from tests.project.sources import ROOT
from tests.release.commands import release

pytestmark = pytest.mark.xdist_group("release_wheel")

SECONDS_MAX = 600
DEPLOY = ROOT / "deploy"


class Installed(NamedTuple):
    """A command that was installed, and a folder where nothing of the checkout is."""

    command: Path
    folder: Path

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run the command there."""
        return subprocess.run(
            [str(self.command), *map(str, arguments)],
            cwd=self.folder,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS_MAX,
        )


def _environment(**settings: str) -> dict[str, str]:
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **settings}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel and `runtime.lock`, checked against its hashes."""
    folder = tmp_path_factory.mktemp("wheel")
    assert release("build", folder / "dist", SOURCE_DATE_EPOCH="1700000000").returncode == 0
    (wheel,) = (folder / "dist").glob("standfast-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python)]
    hashed = ["--require-hashes", "--build-constraints", str(DEPLOY / "build.lock")]
    locked = ["--no-deps", *hashed, "-r", str(DEPLOY / "runtime.lock")]
    subprocess.run([*install, *locked], check=True, timeout=SECONDS_MAX)
    subprocess.run([*install, "--no-deps", str(wheel)], check=True, timeout=SECONDS_MAX)
    (folder / "empty").mkdir()
    return Installed(folder / "venv" / "bin" / "standfast", folder / "empty")


def test_its_dependencies_are_all_there(installed: Installed) -> None:
    """Nothing that a package of it asks for is missing or of another version."""
    python = installed.command.with_name("python")
    checked = subprocess.run(
        [sys.executable, "-m", "uv", "pip", "check", "--python", str(python)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_a_run_and_its_audit_work(installed: Installed) -> None:
    """A scenario through the whole pipeline, a question, and the audit of the store."""
    (installed.folder / "said.jsonl").write_bytes(scenario_bytes("incident-with-candidates"))
    ran = installed.run("run", "said.jsonl", "--out", "out")
    assert ran.returncode == 0, ran.stderr
    store = installed.folder / "out" / "standfast.duckdb"
    asked = installed.run(
        "verify", "h4", "--db", store, "--conversation", "incident-with-candidates"
    )
    assert asked.stdout.startswith("h4 is ungrounded\n")
    audited = installed.run("replay", "audit", "--db", store)
    assert audited.returncode == 0, audited.stdout + audited.stderr


def test_a_worker_with_a_broker_in_memory_works(installed: Installed) -> None:
    """It prints its address, folds what `produce` sends, and ends when it is asked to."""
    (installed.folder / "sent.jsonl").write_bytes(scenario_bytes("incident-with-candidates"))
    with subprocess.Popen(
        [str(installed.command), "worker", "--embedded-broker", "--store", "worker.duckdb"],
        cwd=installed.folder,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as worker:
        try:
            assert worker.stdout is not None
            address = worker.stdout.readline().decode().split()[1]
            connection = ("--bootstrap", address)
            sent = installed.run("produce", "sent.jsonl", *connection)
            assert sent.returncode == 0, sent.stderr
            one = ("--from-beginning", "--max", "1", "--json")
            seen = installed.run("tail", "verdicts", *connection, *one)
            assert orjson.loads(seen.stdout)["type"] == "standfast.verdict.v1"
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(SECONDS_MAX) == 0
        finally:
            worker.kill()
