"""`standfast health`: what a container engine asks instead of a client for HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web

from tests.http_server import HttpServer
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
        ((), {"STANDFAST_WORKER_LISTEN_PORT": "٣"}, "STANDFAST_WORKER_LISTEN_PORT"),
        ((), {"STANDFAST_WORKER_LISTEN_PORT": "99999"}, "STANDFAST_WORKER_LISTEN_PORT"),
        (("--url", "file:///etc/passwd"), {}, "file:///etc/passwd"),
        (("--url", "http://[::1/livez"), {}, "http://[::1/livez"),
        (("--url", "http://127.0.0.1:99999/"), {}, "http://127.0.0.1:99999/"),
        (("--url", "http://127.0.0.1:9/é"), {}, "http://127.0.0.1:9/"),
        (("--url", f"http://{'x' * 64}/"), {}, "http://xxx"),
        (("--url", "http://../"), {}, "http://../"),
        (("--url", "http://a/\nb"), {}, "http://a/ b"),
        (("--url", "http://ann:word@127.0.0.1:9/"), {}, "http://HOST:PORT/livez"),
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


def test_what_answers_with_another_address_or_too_much_is_not_followed() -> None:
    """A redirect is a status that is not 200, and of an answer a bounded part is shown."""

    async def moved(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": NOWHERE})

    async def long(_: web.Request) -> web.Response:
        return web.Response(body=b"\x1b" + b"x" * 1_000_000)

    with HttpServer("/livez", moved, "GET") as server:
        address = f"http://127.0.0.1:{server.port}/livez"
        redirected = health("--url", address)
    assert redirected.returncode == 1
    assert redirected.stderr == f"standfast: {address}: status 302\n"
    with HttpServer("/livez", long, "GET") as server:
        shown = health("--url", f"http://127.0.0.1:{server.port}/livez")
    assert shown.returncode == 0
    assert shown.stdout == "\N{REPLACEMENT CHARACTER}" + "x" * 65_535 + "\n"
