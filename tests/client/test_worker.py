"""The client against a real worker on Apache Kafka: the examples, tokens, the log, alerts."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from processor.client import Alert, Claim, Outcome, RefusedError
from tests.client.asking import KINDS, alerts, ask
from tests.client.installed import CLIENT, build_wheel, run_example
from tests.client.running import SECONDS, Running, prepared
from tests.faults.gates import TOKEN, in_log
from tests.kafka.cluster import Kafka
from tests.project.sources import ROOT
from tests.waiting import wait_until
from tests.web.fake import observe, statement

pytestmark = pytest.mark.xdist_group("client_worker")

ADDRESS = "http://127.0.0.1:8080"


@pytest.fixture(scope="module")
def worker(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A worker for the tests that end none."""
    running = prepared(kafka.bootstrap, tmp_path_factory.mktemp("client"))
    with running.worker() as process:
        wait_until(process.is_ready)
        yield running


def examples() -> list[str]:
    """The Python of the README and of the client's page."""
    texts = [(ROOT / "README.md").read_text(), (CLIENT / "README.md").read_text()]
    return [body for text in texts for body in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the client's wheel and what it declares, and nothing else."""
    folder = tmp_path_factory.mktemp("pipeline")
    wheel = build_wheel(folder / "dist")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python)]
    locked = ["--constraints", str(ROOT / "deploy" / "requirements.lock"), str(wheel)]
    subprocess.run([*uv, *locked], check=True, timeout=300)
    return python


def test_the_examples_run_where_only_the_client_is_installed(
    worker: Running, pipeline: Path, tmp_path: Path
) -> None:
    """Ten lines at most, and they print what may be said, or why it may not."""
    told = orjson.loads(
        re.findall(r"```json\n(.*?)\n", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    )
    worker.say("inc-7", told | {"tenant_id": "acme"})
    assert len(examples()) == 2
    for program in examples():
        assert len(program.splitlines()) <= 10
        assert program.count(ADDRESS) == 1
        here = program.replace(ADDRESS, worker.address)
        ran = run_example(pipeline, tmp_path, here, STANDFAST_TOKEN=TOKEN)
        assert (ran.stdout, ran.returncode) == ("Stop the retries.\n", 0), ran.stderr
    withdrawn = {"op": "revise", "target": "o1", "by": {"record": "e2", "claim": "It is not."}}
    worker.say("inc-7", statement("u-13", withdrawn))
    with worker.guard() as guard:
        assert not guard.check("inc-7", [Claim("so", "h1")], after="u-13").allowed
    ran = run_example(pipeline, tmp_path, here, STANDFAST_TOKEN=TOKEN)
    assert ran.stdout == (
        '"Stop the retries.", h1: ungrounded; o1 is abandoned since turn 2 (revise by e2, ann), '
        "reached through h1 -> o1\n"
    )


def test_nothing_of_a_worker_is_installed_with_the_client(pipeline: Path) -> None:
    """The client and what its one dependency brings."""
    listed = subprocess.run(
        [sys.executable, "-m", "uv", "pip", "freeze", "--python", str(pipeline)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert {re.split(r"[=@ ]", line)[0] for line in listed.splitlines()} == {
        "standfast-client",
        "httpx2",
        "httpcore2",
        "h11",
        "anyio",
        "idna",
        "truststore",
        "typing-extensions",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_waits_for_what_was_just_said_and_stays_in_the_log(
    worker: Running, kind: str
) -> None:
    """Asked again under the name that the client made, the draft is in the log once."""
    conversation = f"fresh-{kind}"
    worker.say(conversation, statement("u1", observe("o1")))
    claims = [Claim("so", "o1")]
    answer = ask(kind, "record", worker.address, conversation, claims, after="u1", token=TOKEN)
    assert (answer.outcome, answer.allowed, answer.recorded) == (Outcome.GROUNDED, True, True)
    assert answer.candidate_id is not None
    again = ask(
        kind,
        "record",
        worker.address,
        conversation,
        claims,
        candidate_id=answer.candidate_id,
        token=TOKEN,
    )
    assert again == answer
    assert in_log(worker.bootstrap, answer.candidate_id) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_token_is_refused_with_its_problem(worker: Running, kind: str) -> None:
    """Not valid is 401, another tenant's conversation is 404 as if it were nobody's."""
    with pytest.raises(RefusedError) as refused:
        ask(kind, "check", worker.address, "c1", [Claim("so", "o1")], token="sf_wrong")
    assert refused.value.status == 401
    worker.say("mine", statement("u1", observe("o1")))
    with pytest.raises(RefusedError) as hidden:
        ask(
            kind,
            "check",
            worker.address,
            "mine",
            [Claim("so", "o1")],
            token=TOKEN,
            settings={"tenant": "other"},
        )
    assert (hidden.value.status, hidden.value.type) == (
        404,
        "urn:standfast:problem:no-conversation",
    )


def test_alerts_are_followed_while_the_pipeline_goes_on(worker: Running) -> None:
    """A decision loses its ground while somebody follows, and the alert comes."""
    decide = {"op": "resolve", "target": "h1", "mode": "consensual"}
    hypothesis = {"op": "hypothesize", "record": "h1", "claim": "So.", "premises": ["o1"]}
    worker.say("watched", statement("u1", observe("o1"), hypothesis))
    with worker.guard() as guard:
        guard.check("watched", [Claim("so", "o1")], after="u1")
    found: list[Alert] = []

    def follow() -> None:
        found.extend(
            alerts(
                "sync",
                worker.address,
                "watched",
                token=TOKEN,
                every_seconds=0.2,
                stop=lambda _: True,
            )
        )

    following = threading.Thread(target=follow)
    following.start()
    withdrawn = {"op": "revise", "target": "o1", "by": {"record": "e2", "claim": "No."}}
    worker.say("watched", statement("u2", decide), statement("u3", withdrawn))
    following.join(SECONDS)
    assert not following.is_alive()
    (alert,) = found
    assert alert.turn == 3
    assert "e2" in alert.message
