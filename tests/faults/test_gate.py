"""The gate of two workers on Apache Kafka: tokens, forwarding, order, rebalances."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import orjson
import pytest

from processor.app.partitions import partition_of
from processor.app.web.tokens import Scope, new_token
from tests.faults.gates import (
    LINE,
    TOKEN,
    Answer,
    Pair,
    check,
    here,
    in_log,
    on_every_partition,
    tell,
    two_workers,
)
from tests.kafka.cluster import Kafka
from tests.kafka.fixtures import delete_topics
from tests.kafka.software import ROOT
from tests.pipeline.workers import PARTITIONS, make_topics, say
from tests.web.fake import AT, observe, statement

pytestmark = pytest.mark.xdist_group("faults_gate")

OLD, EXPIRED = new_token("acme", (Scope.CHECK, Scope.READ), timedelta(days=-1))


@pytest.fixture(scope="module")
def pair(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two workers for all tests that end none; each test has conversations of its own."""
    asyncio.run(delete_topics(kafka.bootstrap))
    make_topics(kafka.bootstrap)
    folder = tmp_path_factory.mktemp("gates")
    with two_workers(kafka.bootstrap, folder, LINE, EXPIRED) as workers:
        yield Pair(kafka.bootstrap, workers, folder)


def test_a_check_sees_what_was_published_just_before_whoever_is_asked(pair: Pair) -> None:
    """Published to Kafka and checked at once, at the owner and at the other worker."""
    for conversation in on_every_partition("fresh"):
        for number, worker in enumerate(pair.workers, 1):
            id_ = f"o{number}"
            tell(pair, conversation, f"u{number}", observe(id_))
            answer = check(worker, conversation, id_, after=f"u{number}", wait_ms=20_000)
            assert (answer.status, answer.said["outcome"]) == (200, "grounded"), answer
            assert answer.said["verdicts"][0]["turn"] == number
            state = worker.ask(f"{here(conversation)}/state?after=u{number}", TOKEN)
            assert state.said["turn"] == number


def test_both_workers_answer_the_same(pair: Pair) -> None:
    """Views, refusals and repeated checks are the same from the owner and through the other."""
    for conversation in on_every_partition("same"):
        tell(pair, conversation, "u1", observe("o1"), observe("it's/so", "o1"))
        first = check(
            pair.workers[0], conversation, "o1", candidate_id="d", after="u1", wait_ms=20_000
        )
        again = [check(worker, conversation, "o1", candidate_id="d") for worker in pair.workers]
        assert [each[:2] for each in again] == [first[:2]] * 2
        other = [check(worker, conversation, "x", candidate_id="d") for worker in pair.workers]
        assert [each.status for each in other] == [409, 409]
        for path in (
            "/state?turn=1",
            "/records/it%27s%2Fso",
            "/affected?record=o1&record=it%27s%2Fso",
            "/context?withdrawn=true",
            "/state?turn=2",
            "/state?turn=x",
        ):
            one, two = (worker.ask(here(conversation) + path, TOKEN) for worker in pair.workers)
            assert one[:2] == two[:2]
            assert one.status == {"/state?turn=2": 404, "/state?turn=x": 400}.get(path, 200)
        assert in_log(pair.bootstrap, "d") >= 1


def test_a_recorded_draft_is_one_utterance_among_others(pair: Pair, tmp_path: Path) -> None:
    """In the log once; the views are those of a run that gets the drafts as utterances."""
    (conversation, *_) = on_every_partition("order")
    lines: list[dict[str, Any]] = []
    for turn in range(1, 6):
        lines.append(tell(pair, conversation, f"u{turn}", observe(f"o{turn}")))
        answer = check(
            pair.workers[turn % 2],
            conversation,
            f"o{turn}",
            candidate_id=f"order-{turn}",
            after=f"u{turn}",
            wait_ms=20_000,
            at=AT,
            speaker="bot",
            text="so it is",
        )
        assert answer.said["recorded"], answer
        draft = {
            "claims": [{"text": f"as o{turn} says", "record": f"o{turn}"}],
            "kind": "candidate",
            "speaker": "bot",
            "role": "assistant",
            "text": "so it is",
        }
        lines.append(
            {
                **statement(f"order-{turn}", conversation_id=conversation),
                "operations": None,
                **draft,
            }
        )
    for turn in range(1, 6):
        assert in_log(pair.bootstrap, f"order-{turn}") == 1
    (tmp_path / "lines").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    out = ("--out", str(tmp_path / "out"))
    standfast(("run", str(tmp_path / "lines"), *out))
    at = ("--db", str(tmp_path / "out" / "standfast.duckdb"), "--tenant", "acme", "--json")
    for turn in (1, 3, None):
        as_of = () if turn is None else ("--turn", str(turn))
        printed = standfast(("state", *at, "--conversation", conversation, *as_of))
        query = "" if turn is None else f"?turn={turn}"
        view = pair.workers[0].ask(f"{here(conversation)}/state{query}", TOKEN)
        assert view.said == orjson.loads(printed)


def standfast(command: tuple[str, ...]) -> bytes:
    """What a command prints."""
    return subprocess.run(
        [sys.executable, "-m", "processor.cli", *command], cwd=ROOT, capture_output=True, check=True
    ).stdout


def test_what_is_not_folded_in_time_is_pending_and_answered_later(pair: Pair) -> None:
    """A draft that nobody waited for is folded all the same; one that waited in vain is not."""
    for conversation in on_every_partition("late"):
        tell(pair, conversation, "u1", observe("o1"))
        check(pair.workers[0], conversation, "o1", after="u1", wait_ms=20_000)
        waited = check(
            pair.workers[0], conversation, "o1", candidate_id="w", after="u9", wait_ms=50
        )
        assert (waited.status, waited.said["outcome"]) == (200, "pending")
        at_once = check(pair.workers[1], conversation, "o1", wait_ms=0)
        assert (at_once.status, at_once.said["outcome"]) == (200, "pending")
        asked_for = {"candidate_id": at_once.said["candidate_id"], "wait_ms": 20_000}
        later = check(pair.workers[0], conversation, "o1", **asked_for)
        assert (later.said["outcome"], later.said["recorded"]) == ("grounded", True)
        assert in_log(pair.bootstrap, at_once.said["candidate_id"]) == 1
    assert in_log(pair.bootstrap, "w") == 0


def test_tokens_are_refused_alike_and_in_like_time(pair: Pair) -> None:
    """Missing, wrong and expired are one; another tenant's conversation is an unknown one."""
    say(pair.bootstrap, [statement("u1", observe("o1"), tenant_id="other", conversation_id="c1")])
    tell(pair, "mine", "u1", observe("o1"))
    check(pair.workers[0], "mine", "o1", after="u1", wait_ms=20_000)
    asked: dict[str, tuple[str, str | None]] = {
        "missing": (here("mine"), None),
        "wrong": (here("mine"), "sf_wrong"),
        "expired": (here("mine"), OLD),
        "foreign": (here("c1", "other"), TOKEN),
        "unknown": (here("c1", beside("other", "c1")), TOKEN),  # asked of the same owner
    }
    worker = pair.workers[0]
    answers: dict[str, Answer] = {}
    taken: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(60):
        for name, (path, token) in asked.items():
            began = time.perf_counter()
            answers[name] = worker.ask(f"{path}/check", token, {"claims": [{"record": "o1"}]})
            taken[name].append(time.perf_counter() - began)
    assert [answers[name].status for name in asked] == [401, 401, 401, 404, 404]
    assert answers["missing"].said == answers["wrong"].said == answers["expired"].said
    assert answers["foreign"].said == answers["unknown"].said
    medians = {name: statistics.median(times) for name, times in taken.items()}
    assert 0.3 < medians["missing"] / medians["wrong"] < 3, medians
    assert 0.3 < medians["expired"] / medians["wrong"] < 3, medians
    assert 0.3 < medians["foreign"] / medians["unknown"] < 3, medians


def beside(tenant: str, conversation: str) -> str:
    """A tenant that does not exist; its conversation of that name is on the same partition."""
    partitions = (
        (name, partition_of(f"{name}/{conversation}".encode(), PARTITIONS))
        for name in (tenant, *(f"nobody-{number}" for number in range(1_000)))
    )
    _, wanted = next(partitions)
    return next(name for name, partition in partitions if partition == wanted)


def test_health_and_metrics_need_no_token(pair: Pair) -> None:
    """Both workers live and are ready, and Prometheus can ask them."""
    for worker in pair.workers:
        assert worker.ask("/livez", None).said["alive"]
        assert worker.ask("/readyz", None).said["ready"]
        with urlopen(f"{worker.address}/metrics", timeout=10) as response:
            assert response.headers["Content-Type"].startswith("text/plain; version=")
            assert b"standfast_events_folded_total" in response.read()


def test_the_settings_of_the_gate_are_checked_before_anything_starts(tmp_path: Path) -> None:
    """An open gate beyond this machine, and a file that is not there, are one line and status 2."""
    for wrong, named in (
        ({"OPEN_GATE": "true", "LISTEN_HOST": "0.0.0.0"}, b"loopback"),
        ({"PEERS": '["nowhere"]'}, b"STANDFAST_WORKER_PEERS"),
        ({"LISTEN_PORT": "70000"}, b"STANDFAST_WORKER_LISTEN_PORT"),
    ):
        refused = subprocess.run(
            [*(sys.executable, "-m", "processor.cli", "worker"), "--bootstrap", "b:1"],
            cwd=ROOT,
            env={f"STANDFAST_WORKER_{name}": value for name, value in wrong.items()},
            capture_output=True,
            check=False,
        )
        assert refused.returncode == 2
        assert refused.stderr.count(b"\n") == 1
        assert named in refused.stderr
