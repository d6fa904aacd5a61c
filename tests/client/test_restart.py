"""The client while a worker on Apache Kafka hangs, dies and comes back."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest

from processor.client import Breaker, Claim, Outcome
from tests.client.running import SECONDS, Running, prepared
from tests.faults.gates import in_log
from tests.kafka.cluster import Kafka
from tests.pipeline.workers import stop
from tests.waiting import wait_until
from tests.web.fake import observe, statement


@pytest.fixture(scope="module")
def running(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Running:
    """Apache Kafka with topics; each test has workers of its own."""
    return prepared(kafka.bootstrap, tmp_path_factory.mktemp("restart"))


def test_a_gate_that_hangs_is_given_up_and_asked_again_when_it_runs(running: Running) -> None:
    """A worker that is stopped answers nothing: its user decides, and the breaker opens."""
    with running.worker() as process:
        wait_until(process.is_ready)
        running.say("hangs", statement("u1", observe("o1")))
        claims = [Claim("so", "o1")]
        breaker = Breaker(failures_max=1, open_seconds=0.5)
        with running.guard() as patient, running.guard(seconds=1.0, breaker=breaker) as guard:
            assert patient.record("hangs", claims, after="u1").allowed
            process.process.send_signal(signal.SIGSTOP)
            try:
                answer = guard.record("hangs", claims, candidate_id="d1")
                assert (answer.outcome, answer.allowed) == (Outcome.UNAVAILABLE, False)
            finally:
                process.process.send_signal(signal.SIGCONT)
            wait_until(lambda: guard.record("hangs", claims, candidate_id="d1").allowed)
            assert in_log(running.bootstrap, "d1") == 1
        assert stop(process.process) == 0


def test_a_worker_that_restarts_in_the_middle_is_waited_for(running: Running) -> None:
    """A check begins while no worker runs and ends with the verdict of the next one."""
    claims = [Claim("so", "o1")]
    with running.worker() as process:
        wait_until(process.is_ready)
        running.say("moves", statement("u1", observe("o1")))
        with running.guard() as guard:
            assert guard.record("moves", claims, after="u1", candidate_id="d2").allowed
        os.kill(process.process.pid, signal.SIGKILL)
        process.process.wait(SECONDS)
    breaker = Breaker(failures_max=10_000)
    answers: list[Any] = []

    def check() -> None:
        with running.guard(seconds=240.0, breaker=breaker) as guard:
            answers.append(guard.record("moves", claims, candidate_id="d2"))

    checking = threading.Thread(target=check)
    checking.start()
    time.sleep(0.5)
    assert answers == []
    with running.worker():
        checking.join(240)
    assert [answer.outcome for answer in answers] == [Outcome.GROUNDED]
    assert in_log(running.bootstrap, "d2") == 1
