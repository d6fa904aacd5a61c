"""Every benchmark that asks a model, end to end on small samples, and what outlives kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from replay.evaluate.benchmark import Benchmark
from replay.evaluate.remembered import ANSWERS_NAME
from replay.evaluate.suites import BENCHMARKS
from tests.evaluate.test_dated import SAMPLE, templama_line
from tests.evaluate.test_loaders import (
    BEAM_CHAT,
    BEAM_QUESTIONS,
    LOCOMO_SAMPLE,
    LONGMEMEVAL_SAMPLE,
    esr_question,
    json_file,
    lines,
)
from tests.evaluate.test_reviseqa import SCENARIO
from tests.evaluate.test_with_a_model import STREAM, answer, evaluate
from tests.interpreter.scripted_endpoint import Said, ScriptedEndpoint, Step, operations
from tests.interpreter.with_endpoint import environment_at

ASKING = {each.name: each for each in BENCHMARKS if each.model_arms}


def sample(name: str, folder: Path) -> list[object]:
    """The options that name a small sample of a benchmark's data."""
    path = folder / "data.json"
    match name:
        case "memab-fc":
            json_file(path, STREAM)
        case "reviseqa":
            lines(path, SCENARIO)
        case "locomo":
            json_file(path, LOCOMO_SAMPLE)
        case "longmemeval":
            json_file(path, LONGMEMEVAL_SAMPLE)
        case "beam":
            path = folder / "beam"
            json_file(path / "1" / "chat.json", BEAM_CHAT)
            asked = path / "1" / "probing_questions" / "probing_questions.json"
            json_file(asked, BEAM_QUESTIONS)
        case "dyknow":
            json_file(path, SAMPLE)
        case "templama":
            path.write_bytes(templama_line(2010, "Ada") + templama_line(2012, "Bo"))
        case "esr-bench":
            lines(path, esr_question("q1", "monotonic", "30 s"))
        case "render-terms":
            return ["--limit", 3]
        case other:
            raise AssertionError(f"{other}: give a sample of it")
    return ["--data", path]


@pytest.mark.parametrize("asking", ASKING.values(), ids=list(ASKING))
def test_every_model_arm_is_asked_to_the_end_and_a_failure_is_counted(
    asking: Benchmark, tmp_path: Path
) -> None:
    """Each item under each arm once; the one reply that cannot be read is told in the table."""
    out = tmp_path / "out"
    has_failed = False

    def model(body: dict[str, Any]) -> Step:
        nonlocal has_failed
        if "\n\nQuestion: " not in body["messages"][-1]["content"]:
            return operations()
        if has_failed:
            return answer("uncertain")
        has_failed = True
        return Said("no object at all")

    with ScriptedEndpoint(always=model) as endpoint:
        results = evaluate(endpoint, asking.name, *sample(asking.name, tmp_path), "--out", out)
    items = results["items"]
    assert list(dict.fromkeys(each["arm"] for each in items)) == list(asking.model_arms)
    by_arm = [[e["item"] for e in items if e["arm"] == arm] for arm in asking.model_arms]
    assert by_arm[0]
    assert all(each == by_arm[0] for each in by_arm)
    assert [each["failure"] for each in items if each["failure"]] == ["unreadable"]
    table = (out / f"{asking.name}.md").read_text()
    assert "1 unreadable); they are neither right nor wrong" in table
    assert all(f"| {arm} |" in table for arm in asking.model_arms)


def test_what_was_answered_outlives_kill_9_and_the_terms_come_out_whole(tmp_path: Path) -> None:
    """The process dies in the midst of a question; the next one asks that and what is left."""
    options = ["render-terms", "--limit", 5, "--out"]

    def reader(body: dict[str, Any]) -> Said:
        return answer("30 s" if "Current value" in body["messages"][-1]["content"] else "uncertain")

    with ScriptedEndpoint(always=reader) as endpoint:
        whole = evaluate(endpoint, *options, tmp_path / "whole")
        calls = len(endpoint.asked)
    started, dying = threading.Event(), list[subprocess.Popen[bytes]]()

    def kills(body: dict[str, Any]) -> Said:
        if len(endpoint.asked) == calls // 2:
            assert started.wait(60)
            os.kill(dying[0].pid, signal.SIGKILL)
        return reader(body)

    out = tmp_path / "out"
    command = [sys.executable, "-m", "processor.cli.main", "evaluate", *map(str, (*options, out))]
    with ScriptedEndpoint(always=kills) as endpoint:
        environment = environment_at(endpoint)
        dying.append(subprocess.Popen([*command, "--reader", "openai"], env=environment))
        started.set()
        assert dying[0].wait(60) == -signal.SIGKILL
        answered = endpoint.asked[:-1]
    assert len((out / ANSWERS_NAME).read_bytes().splitlines()) == len(answered) == calls // 2 - 1
    with ScriptedEndpoint(always=reader) as endpoint:
        results = evaluate(endpoint, *options, out)
        assert endpoint.asked
        assert not any(body in answered for body in endpoint.asked)
    assert results["items"] == whole["items"]
    assert results["contrasts"] == whole["contrasts"]
    table = (out / "render-terms.md").read_text()
    assert all(f"| {term}: " in table for term in ("render", "fine mechanism", "coarse mechanism"))
