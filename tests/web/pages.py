"""`standfast serve` as a process of its own, and requests to it."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

SECONDS_MAX = 30


class Answer(NamedTuple):
    """What the server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.body)

    def problem(self) -> str:
        """The kind of problem that the body tells of."""
        assert self.headers["content-type"] == "application/problem+json"
        return str(self.json()["type"]).removeprefix("urn:standfast:problem:")


class Server(NamedTuple):
    """A running server."""

    address: str
    process: subprocess.Popen[bytes]

    def get(self, path: str, token: str | None = None, **headers: str) -> Answer:
        """The answer to a GET."""
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return self.ask("GET", path, None, headers)

    def ask(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Answer:
        """The answer to any request."""
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=SECONDS_MAX)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, told, answer.read())
        finally:
            connection.close()


@contextmanager
def served(db: Path, *options: str | Path, complains: str = "") -> Iterator[Server]:
    """The command, from when it listens until it was asked to stop; it must then end well.

    It may complain in one line that holds `complains`, and of nothing without that.
    """
    command = [sys.executable, "-m", "processor.cli.main", "serve", "--db", db, "--port", "0"]
    process = subprocess.Popen(
        [*map(str, [*command, *options]), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said, process.communicate(timeout=SECONDS_MAX)[1]
        yield Server(orjson.loads(said)["address"], process)
    finally:
        process.terminate()
        _, complaint = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, complaint
    assert complaint.count(b"\n") == bool(complains)
    assert complains in complaint.decode()
