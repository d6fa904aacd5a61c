"""`standfast health`: what a container engine asks instead of a client for HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.web.pages import served

NOWHERE = "http://127.0.0.1:9/livez"


def health(*options: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the command with these settings alone."""
    return subprocess.run(
        [sys.executable, "-m", "processor.cli.main", "health", *options],
        env={"PATH": os.environ["PATH"], **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a conversation."""
    folder = tmp_path_factory.mktemp("health")
    command = (sys.executable, "-m", "processor.cli.main", "run")
    scenario = "processor/scenarios/incident.jsonl"
    subprocess.run([*command, scenario, "--out", folder], check=True, capture_output=True)
    return folder / "standfast.duckdb"


def test_what_lives_is_status_0(db: Path) -> None:
    """At the port of the settings, or at an address that is given; proxies are not asked."""
    with served(db) as server:
        port = server.address.rstrip("/").rpartition(":")[2]
        own = health(STANDFAST_WORKER_LISTEN_PORT=port, http_proxy=NOWHERE)
        given = health("--url", f"{server.address}livez")
        wrong = health("--url", f"{server.address}nothing")
    assert (own.returncode, own.stdout) == (0, '{"alive": true}\n')
    assert (given.returncode, given.stdout) == (0, '{"alive": true}\n')
    assert wrong.returncode == 1
    assert wrong.stderr.count("\n") == 1
    assert "status 404" in wrong.stderr


def test_what_does_not_answer_is_status_1() -> None:
    """With the reason in one line."""
    silent = health("--url", NOWHERE)
    assert silent.returncode == 1
    assert silent.stderr.count("\n") == 1
    assert NOWHERE in silent.stderr


@pytest.mark.parametrize(
    ("options", "settings", "named"),
    [
        ((), {}, "STANDFAST_WORKER_LISTEN_PORT"),
        ((), {"STANDFAST_WORKER_LISTEN_PORT": "http"}, "STANDFAST_WORKER_LISTEN_PORT"),
        (("--url", "file:///etc/passwd"), {}, "file:///etc/passwd"),
    ],
)
def test_what_cannot_be_asked_is_bad_input(
    options: tuple[str, ...], settings: dict[str, str], named: str
) -> None:
    """One line that names it, and status 2."""
    refused = health(*options, **settings)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert named in refused.stderr
