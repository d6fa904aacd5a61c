"""`standfast evaluate operations` with a model behind a real endpoint, and its answers again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from processor.scenarios import utterances
from replay.evaluate.operations import SCENARIOS
from tests.interpreter.scripted_endpoint import (
    Said,
    ScriptedEndpoint,
    Status,
    operations,
)
from tests.interpreter.with_endpoint import standfast_at

GOLD = {
    utterance.text: [each.model_dump(mode="json") for each in utterance.operations]
    for name in SCENARIOS
    for utterance in utterances(name)
    if utterance.operations is not None
}


def evaluate(endpoint: ScriptedEndpoint | None, *arguments: object) -> tuple[int, Any, str]:
    """Status, results and standard error of the command, with an endpoint in its environment."""
    done = standfast_at(endpoint, "evaluate", "operations", "--json", *arguments)
    return done.returncode, done.stdout and orjson.loads(done.stdout), done.stderr.decode()


def knows_all(body: dict[str, Any]) -> Said:
    """The gold operations of the turn that the prompt asks about."""
    told = body["messages"][-1]["content"].splitlines()
    said = next(line for line in reversed(told) if line.startswith('{"speaker"'))
    return operations(*GOLD[orjson.loads(said)["text"]])


def test_recorded_gold_is_read_perfectly(tmp_path: Path) -> None:
    """A model that knows all scores 1 in every condition, and so do its answers when recorded."""
    cassette = tmp_path / "answers.jsonl"
    with ScriptedEndpoint(always=knows_all) as endpoint:
        asked = ["--interpreter", "openai", "--record", cassette]
        status, measured, complaint = evaluate(endpoint, *asked)
    assert (status, complaint) == (0, "")
    assert len(endpoint.asked) == 3 * len(GOLD)
    for row in measured["summary"]:
        assert row["f1"]["lowest"] == row["key_shift_exact_match"]["lowest"] == 1.0
        assert (row["unreadable"], row["tokens_per_turn"]) == (0, 120)
    prompts = {item["prompt_id"] for run in measured["runs"] for item in run["items"]}
    assert prompts == {
        "statement/minimal/v1",
        "statement/definitions/v1",
        "statement/state_augmented/v1/8000",
    }
    again = ["--interpreter", "recorded", "--cassette", cassette]
    status, replayed, complaint = evaluate(None, *again)
    assert (status, complaint) == (0, "")
    assert [row["f1"] for row in replayed["summary"]] == [row["f1"] for row in measured["summary"]]


def test_what_was_not_recorded_is_refused(tmp_path: Path) -> None:
    """Other conditions than the recorded one are answered by one line, not by a score."""
    cassette = tmp_path / "answers.jsonl"
    with ScriptedEndpoint(always=knows_all) as endpoint:
        asked = ["--interpreter", "openai", "--record", cassette, "--conditions", "minimal"]
        assert evaluate(endpoint, *asked)[0] == 0
    status, _, complaint = evaluate(None, "--interpreter", "recorded", "--cassette", cassette)
    assert status == 2
    assert complaint.count("\n") == 1
    assert "no answer was recorded" in complaint


def test_turns_that_a_model_refuses_are_failures_and_no_labels() -> None:
    """A model that refuses every turn scores nothing, and all turns are counted as unreadable."""
    refusing = Said(None, refusal="I cannot help with that.")
    with ScriptedEndpoint(always=lambda _: refusing) as endpoint:
        asked = ["--interpreter", "openai", "--conditions", "minimal"]
        status, measured, _ = evaluate(endpoint, *asked)
    assert status == 0
    assert sum(row["unreadable"] for row in measured["summary"]) == len(GOLD)
    assert {row["f1"]["mean"] for row in measured["summary"]} == {0.0}


def test_an_endpoint_that_cannot_be_used_is_one_line() -> None:
    """A wrong key ends the command with status 2 and says what is wrong."""
    with ScriptedEndpoint(always=lambda _: Status(401), key="another") as endpoint:
        status, _, complaint = evaluate(endpoint, "--interpreter", "openai")
    assert status == 2
    assert complaint.count("\n") == 1
    assert endpoint.url in complaint
