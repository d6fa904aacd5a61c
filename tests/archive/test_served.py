"""An archive that serves the pages of what it copies: nobody else can open the file meanwhile."""

from __future__ import annotations

import http.client
import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from schemas.ids import conversation_key
from schemas.wire import canonical_bytes
from tests.archive.archives import COMMAND, ROOT, SECONDS_MAX, make_topics, send
from tests.benchmarks.conversations import log_of
from tests.kafka.cluster import Kafka
from tests.web.pages import Server

DATA = "/v1/tenants/default/conversations/bench"


def test_what_is_copied_is_shown_at_once(empty_kafka: Kafka, tmp_path: Path) -> None:
    """While it copies, the pages grow: a page that is open is told, and finds what is new."""
    bootstrap = empty_kafka.bootstrap
    make_topics(bootstrap, 1)
    key = conversation_key("default", "bench").encode()
    log = [
        ("operations", {"key": key, "value": canonical_bytes(event), "partition": 0})
        for event in log_of(40)[0]
    ]
    send(bootstrap, log[:30])
    options = ("--bootstrap", bootstrap, "--db", tmp_path / "archive.duckdb", "--serve", "0")
    process = subprocess.Popen(
        [*COMMAND, "archive", *map(str, options), "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        server = Server(orjson.loads(process.stdout.readline())["address"], process)
        assert _shows(server, 30)
        place = urlsplit(server.address).netloc
        with closing(http.client.HTTPConnection(place, timeout=SECONDS_MAX)) as connection:
            connection.request("GET", f"{DATA}/events?after=30")
            with connection.getresponse() as news:
                send(bootstrap, log[30:])
                assert 30 < _grown_to(news) <= 40
        assert _shows(server, 40)
        assert server.get("/livez").json() == {"alive": True}
        told = server.get("/metrics").body.decode()
        assert "\nstandfast_archive_copied 40.0\n" in told
        assert '\nstandfast_archive_behind{partition="0",topic="operations"} 0.0\n' in told
        process.send_signal(signal.SIGTERM)
        said, complaint = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, complaint) == (0, b"")
    assert orjson.loads(said)["copied"] == 40


def _grown_to(news: http.client.HTTPResponse) -> int:
    """The sequence that the next piece of news tells of; what only keeps it open is passed."""
    while (line := news.readline()) != b"event: grown\n":
        assert line.strip() == b"" or line.startswith(b":"), line
    return int(orjson.loads(news.readline().removeprefix(b"data: "))["sequence"])


def _shows(server: Server, turns: int) -> bool:
    """Whether the page comes to show that many turns."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        answer = server.get(f"{DATA}/report")
        if answer.status == 200 and answer.json()["turns"] == turns:
            return True
        time.sleep(0.1)
    return False
