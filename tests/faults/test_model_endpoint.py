"""A worker that asks a model: an endpoint that is away, then works, over Apache Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from processor.app.messages import DEAD_LETTERS
from tests.archive.archives import archive
from tests.cli.test_commands import standfast
from tests.faults.test_endpoint import get, oldest_age_s, wait_until_ready
from tests.interpreter.scripted_endpoint import (
    KEY,
    MODEL,
    Json,
    Said,
    ScriptedEndpoint,
    Step,
    operations,
)
from tests.interpreter.test_run_with_model import interpretations
from tests.kafka.cluster import Kafka, free_ports
from tests.pipeline.workers import (
    PARTITIONS,
    make_topics,
    read,
    running_worker,
    say,
    stop,
    wait_until_done,
)

COUNT = 24


def said(number: int) -> dict[str, Any]:
    """An utterance to be read, of one of four conversations."""
    return {
        "tenant_id": "acme",
        "conversation_id": f"c{number % 4}",
        "utterance_id": f"u{number}",
        "speaker": "ann",
        "at": "2026-03-01T02:31:00Z",
        "text": f"number {number} is here",
    }


def model(body: Json) -> Step:
    """An observation for each utterance, but nothing that can be read for the fifth."""
    asked = body["messages"][1]["content"]
    number = next(n for n in range(COUNT) if f"number {n} is here" in asked)
    claim = f"number {number}"
    if number == 5:
        return Said("I would rather not say.")
    return operations({"op": "observe", "record": f"o{number}", "claim": claim})


def test_a_worker_waits_for_its_model_and_loses_nothing(empty_kafka: Kafka, tmp_path: Path) -> None:
    """Not ready while the endpoint is away; then every turn has its operations or its reason."""
    bootstrap, store = empty_kafka.bootstrap, tmp_path / "worker.duckdb"
    make_topics(bootstrap)
    port = free_ports(1)[0]
    url = f"http://127.0.0.1:{port}"
    with ScriptedEndpoint(always=model, is_away=True) as endpoint:
        settings = {
            "OPENAI_BASE_URL": endpoint.url,
            "OPENAI_API_KEY": KEY,
            "STANDFAST_INTERPRETER_KIND": "openai",
            "STANDFAST_INTERPRETER_MODEL": MODEL,
            "STANDFAST_WORKER_LISTEN_PORT": str(port),
        }
        with running_worker(bootstrap, store, **settings) as worker:
            say(bootstrap, [said(number) for number in range(COUNT)])
            assert '"endpoint":false' in wait_until_ready(url, 503).replace(" ", "")
            while oldest_age_s(url) < 1.0:
                assert worker.poll() is None
            endpoint.is_away = False
            wait_until_done(bootstrap)
            wait_until_ready(url, 200)
            metrics = get(f"{url}/metrics")[1]
            assert stop(worker) == 0
    told = interpretations(store)
    assert sorted(told) == sorted(f"u{number}" for number in range(COUNT))
    assert {each.interpreter for each in told.values()} == {"openai"}
    assert [each.attempts for each in map(told.get, ("u4", "u5", "u6")) if each] == [1, 2, 1]
    (letter,) = read(bootstrap, DEAD_LETTERS, PARTITIONS)
    assert orjson.loads(letter.value)["utterance_id"] == "u5"
    assert f"standfast_model_calls_total {COUNT + 1}.0" in metrics
    archived = tmp_path / "archive.duckdb"
    assert archive(bootstrap, archived).returncode == 0
    for db in (store, archived):
        usage = standfast("usage", "--db", db, "--json")
        assert orjson.loads(usage.stdout)["total"]["tokens_in"] == 100 * (COUNT + 1)
    assert KEY not in store.with_suffix(".log").read_text()
    assert "is here" not in store.with_suffix(".log").read_text()
