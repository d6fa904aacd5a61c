"""A conversation that moves to another worker: nobody can be asked meanwhile, and all is kept."""

from __future__ import annotations

import time
from pathlib import Path

from tests.faults.gates import (
    LINE,
    TOKEN,
    Answer,
    Gated,
    Pair,
    check,
    gated,
    here,
    on_every_partition,
    tell,
    two_workers,
)
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import make_topics, stop
from tests.waiting import wait_until
from tests.web.fake import observe


def test_a_rebalance_is_503_with_retry_after_and_then_over(
    empty_kafka: Kafka, tmp_path: Path
) -> None:
    """One worker is killed and another joins: meanwhile nothing but 503, and no draft is lost."""
    bootstrap = empty_kafka.bootstrap
    make_topics(bootstrap)
    conversations = on_every_partition("moved")
    with two_workers(bootstrap, tmp_path, LINE) as (one, other):
        place = Pair(bootstrap, [one, other], tmp_path)
        for conversation in conversations:
            tell(place, conversation, "u1", observe("o1"))
            assert check(one, conversation, "o1", after="u1", wait_ms=20_000).status == 200
        assert other.process is not None
        other.process.kill()
        seen = ask_until_all_answer(one, conversations, "killed")
        assert seen, "nobody noticed"
        with gated(bootstrap, tmp_path / "third.duckdb", other.address, [one.address]) as third:
            wait_until(third.is_ready)
            ask_until_all_answer(one, conversations, "joined")
            ask_until_all_answer(third, conversations, "joined")
            for conversation in conversations:
                views = [
                    worker.ask(f"{here(conversation)}/state", TOKEN) for worker in (one, third)
                ]
                assert views[0][:2] == views[1][:2]
            for worker in (third, one):
                assert worker.process is not None
                assert stop(worker.process) == 0
    assert all(each.headers.get("Retry-After") for each in seen)


def ask_until_all_answer(worker: Gated, conversations: list[str], name: str) -> list[Answer]:
    """Every conversation is checked until it is answered; the refusals on the way."""
    refused: list[Answer] = []
    for conversation in conversations:
        deadline = time.monotonic() + 40
        while True:
            answer = check(worker, conversation, "o1", candidate_id=name, wait_ms=5_000)
            if answer.status == 200 and answer.said["outcome"] == "grounded":
                break
            if answer.status != 200:
                assert answer.status == 503, answer
                refused.append(answer)
            assert time.monotonic() < deadline, (conversation, answer, worker.ask("/readyz", None))
            time.sleep(0.05)
    return refused
