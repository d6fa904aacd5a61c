"""An endpoint that hangs, refuses and answers nonsense: its faults are waited out."""

from __future__ import annotations

import re
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from processor.app.messages import OPERATIONS
from tests.faults.endpoint import MODES, Endpoint
from tests.faults.oracle import assert_nothing_lost
from tests.faults.script import as_text
from tests.kafka.cluster import Kafka, free_ports
from tests.pipeline.workers import (
    PARTITIONS,
    SCRIPTED_WORKER,
    make_topics,
    read,
    running_worker,
    say,
    stop,
    wait_until_done,
)
from tests.strategies_streams import seeded_stream
from tests.waiting import wait_until
from tests.web.fake import observe, statement

CONVERSATIONS = [(f"tenant-{n % 4}", f"c{n % 3}") for n in range(12)]
READY_SECONDS_MAX = 120.0


def get(url: str) -> tuple[int, str]:
    """The status and the body of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def wait_until_ready(url: str, expected: int) -> str:
    """Wait for a status of /readyz; what it says then."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while (answer := get(f"{url}/readyz"))[0] != expected:
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)
    return answer[1]


def oldest_age_s(url: str) -> float:
    """How long the oldest utterance has been pending, by its metric."""
    text = get(f"{url}/metrics")[1]
    found = re.search(r'standfast_oldest_in_hand_seconds\{topic="utterances"\} (\S+)', text)
    assert found is not None, text
    return float(found[1])


def work_through_faults(kafka: Kafka, folder: Path, seconds: float) -> None:
    """Each kind of fault for some seconds, while utterances come; then it works again."""
    make_topics(kafka.bootstrap)
    said = [as_text(dict(each)) for each in seeded_stream(9, 240, CONVERSATIONS)]
    port = free_ports(1)[0]
    url = f"http://127.0.0.1:{port}"
    size = len(said) // (len(MODES) + 1)
    with (
        Endpoint() as endpoint,
        running_worker(
            kafka.bootstrap,
            folder / "worker.duckdb",
            SCRIPTED_WORKER,
            STANDFAST_SCRIPT_ENDPOINT=endpoint.url,
            STANDFAST_WORKER_LISTEN_PORT=str(port),
        ) as worker,
    ):
        say(kafka.bootstrap, said[:size])
        wait_until_done(kafka.bootstrap)
        wait_until_ready(url, 200)
        for number, mode in enumerate(MODES, start=1):
            endpoint.mode = mode
            say(kafka.bootstrap, said[number * size : (number + 1) * size])
            assert '"endpoint":false' in wait_until_ready(url, 503).replace(" ", "")
            time.sleep(seconds)
            assert oldest_age_s(url) >= seconds
            assert get(f"{url}/livez")[0] == 200
            endpoint.mode = "works"
            wait_until_done(kafka.bootstrap)
            wait_until_ready(url, 200)
        assert set(endpoint.calls) == {"works", *MODES}
        assert stop(worker) == 0
    outcome = assert_nothing_lost(kafka.bootstrap, PARTITIONS)
    assert sum(map(len, outcome.conversations.values())) > size


def test_an_endpoint_that_fails_is_waited_for(empty_kafka: Kafka, tmp_path: Path) -> None:
    """No turn fails, readiness and the age of what is pending tell, and work resumes by itself."""
    work_through_faults(empty_kafka, tmp_path, seconds=2.0)


@pytest.mark.thorough
def test_an_endpoint_that_fails_for_a_minute_is_waited_for(
    empty_kafka: Kafka, tmp_path: Path
) -> None:
    """The same with a minute of each fault."""
    work_through_faults(empty_kafka, tmp_path, seconds=60.0)


def test_what_needs_no_model_goes_on_while_it_hangs(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Every place for calls is taken, and what brings its operations is folded all the same."""
    bootstrap = empty_kafka.bootstrap
    make_topics(bootstrap)
    asked = [
        as_text({**statement("u", observe("o"), conversation_id=name), "kind": "statement"})
        for name in (f"asked{number}" for number in range(12))
    ]
    brings = statement("u", observe("o"), conversation_id="brings")
    key = b"acme/brings"
    settings = {"STANDFAST_WORKER_CALLS_MAX": "2", "STANDFAST_WORKER_CALLS_PER_TENANT_MAX": "2"}
    with Endpoint() as endpoint:
        endpoint.mode = "hangs"
        settings["STANDFAST_SCRIPT_ENDPOINT"] = endpoint.url
        with running_worker(
            bootstrap, tmp_path / "w.duckdb", SCRIPTED_WORKER, **settings
        ) as worker:
            say(bootstrap, [*asked, brings])
            wait_until(lambda: [each.key for each in read(bootstrap, OPERATIONS)] == [key])
            assert endpoint.calls
            endpoint.mode = "works"
            wait_until_done(bootstrap)
            assert stop(worker) == 0
    assert len(read(bootstrap, OPERATIONS)) == len(asked) + 1


def test_a_worker_whose_calls_do_not_end_stops_in_time(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Asked to stop with calls in flight it is gone at the deadline; the next one loses nothing."""
    bootstrap, drain_seconds = empty_kafka.bootstrap, 4.0
    make_topics(bootstrap)
    said = [as_text(dict(each)) for each in seeded_stream(10, 120, CONVERSATIONS)]
    with Endpoint() as endpoint:
        endpoint.mode = "hangs"
        settings = {
            "STANDFAST_SCRIPT_ENDPOINT": endpoint.url,
            "STANDFAST_WORKER_DRAIN_SECONDS_MAX": str(drain_seconds),
        }
        one, two = tmp_path / "one.duckdb", tmp_path / "two.duckdb"
        with running_worker(bootstrap, one, SCRIPTED_WORKER, **settings) as worker:
            say(bootstrap, said)
            wait_until(lambda: endpoint.calls)
            asked = time.monotonic()
            assert stop(worker) == 1
            assert time.monotonic() - asked < drain_seconds + 30
        assert "not drained in 4 s" in one.with_suffix(".log").read_text()
        endpoint.mode = "works"
        with running_worker(bootstrap, two, SCRIPTED_WORKER, **settings) as worker:
            wait_until_done(bootstrap)
            assert stop(worker) == 0
    assert_nothing_lost(bootstrap, PARTITIONS)
