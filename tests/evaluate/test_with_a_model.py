"""`--reader openai`: every arm through a real endpoint with a scripted model behind it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from replay.evaluate.adapters.memab_fc import parse_context, stream_utterances
from replay.evaluate.measurements import ITEMS_NAME
from replay.evaluate.remembered import ANSWERS_NAME
from tests.interpreter.scripted_endpoint import Said, ScriptedEndpoint, Status, Step, operations
from tests.interpreter.with_endpoint import standfast_at

CONTEXT = (
    "Here is a list of facts:\n"
    "0. The capital of Toyland is Woodby.\n"
    "1. The chairperson of Woodby is Ada Pine.\n"
    "2. The capital of Toyland is Stoneby.\n"
    "3. The chairperson of Stoneby is Bo Birch.\n"
)
STREAM = {
    "data": [
        {
            "context": CONTEXT,
            "questions": ["Who is the chairperson of the capital of Toyland?"],
            "answers": [["Bo Birch"]],
            "metadata": {"qa_pair_ids": ["factconsolidation_mh_6k_no0"]},
        },
        {
            "context": CONTEXT,
            "questions": ["What is the capital of Toyland?"],
            "answers": [["Stoneby"]],
            "metadata": {"qa_pair_ids": ["factconsolidation_sh_6k_no0"]},
        },
    ]
}
GOLD = {
    utterance.text: [each.model_dump(mode="json") for each in utterance.operations or ()]
    for utterance in stream_utterances(parse_context(CONTEXT), "memab-fc")
}


def answer(text: str) -> Said:
    """An answer of a model to a question."""
    return Said(orjson.dumps({"reason": "it says so", "answer": text}).decode())


def first_name(body: dict[str, Any]) -> Said:
    """Reads utterances rightly, and answers questions by the first value that fits in the context.

    So it is right where what was replaced is not handed over, and wrong where it comes first.
    """
    told = body["messages"][-1]["content"]
    context, asks, question = told.partition("\n\nQuestion: ")
    if not asks:
        said = [line for line in told.splitlines() if line.startswith('{"speaker"')]
        return operations(*GOLD[orjson.loads(said[-1])["text"]])
    wanted = "Ada Pine|Bo Birch" if question.startswith("Who") else "Woodby|Stoneby"
    found = re.search(wanted, context, re.IGNORECASE)
    return answer(found[0] if found else "uncertain")


def evaluate(endpoint: ScriptedEndpoint, *arguments: object) -> Any:
    """The results of a benchmark read by a model."""
    done = standfast_at(endpoint, "evaluate", *arguments, "--reader", "openai", "--json")
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    return orjson.loads(done.stdout)


def right(results: Any, measure: str = "right") -> dict[str, float]:
    """The mean of a measure over all items, by arm."""
    return {
        row["arm"]: row["figure"]["mean"]
        for row in results["summary"]
        if row["measure"] == measure and row["group"] == ""
    }


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """A stream of four facts in the published format."""
    path = tmp_path / "stream.json"
    path.write_bytes(orjson.dumps(STREAM))
    return path


def test_every_arm_is_asked_the_same_question_over_its_own_context(stream: Path) -> None:
    """A reader that takes the first it finds is right over the verifier, wrong over raw text."""
    with ScriptedEndpoint(always=first_name) as endpoint:
        results = evaluate(endpoint, "memab-fc", "--data", stream)
    assert results["subject"]["model"] == "scripted-1"
    figures = right(results)
    assert figures["llm_only"] == figures["rag"] == 0
    assert figures["verifier_native"] == figures["verifier_end_to_end"] == 1
    assert figures["coarse_discard"] == figures["coarse_retain"] == 1
    assert right(results, "tokens_in") == dict.fromkeys(figures, 100)
    assert right(results, "ingest_tokens") == {"verifier_end_to_end": 4 * 120}
    asked = [body for body in endpoint.asked if "Question: " in body["messages"][-1]["content"]]
    assert len(asked) == len(results["items"]) == 2 * len(figures)


def test_an_evaluation_that_was_cut_short_asks_only_what_is_missing(
    stream: Path, tmp_path: Path
) -> None:
    """The outage ends the first run in one line; the second asks the rest."""
    out = tmp_path / "out"
    options = ["memab-fc", "--data", stream, "--arms", "llm_only,verifier_native", "--out", out]
    refused = Status(401, "invalid_api_key")
    with ScriptedEndpoint(steps=[answer("Bo Birch"), refused], always=first_name) as endpoint:
        done = standfast_at(endpoint, "evaluate", *options, "--reader", "openai")
        assert done.returncode == 2
        (line,) = done.stderr.decode().splitlines()
        assert "the endpoint cannot be used: HTTP 401" in line
        assert len((out / ITEMS_NAME).read_bytes().splitlines()) == 2
        asked = len(endpoint.asked)
        results = evaluate(endpoint, *options)
        assert len(endpoint.asked) - asked == 3
    assert right(results)["llm_only"] == 0.5


def test_the_terms_are_those_of_the_answers_that_were_given() -> None:
    """A scripted reader that is right on known arms gives terms that are known beforehand."""

    def reader(body: dict[str, Any]) -> Said:
        """Right where the layout shows what is current; abstains over bare values."""
        told = body["messages"][-1]["content"]
        current = re.search(r"Current value: (.*)", told)
        return answer("uncertain" if current is None else current[1])

    with ScriptedEndpoint(always=reader) as endpoint:
        results = evaluate(endpoint, "render-terms", "--limit", "20")
    (summary,) = [
        {r["arm"]: r["figure"]["mean"] for r in results["summary"] if r["measure"] == "exact"}
    ]
    terms = {each["name"]: each["difference"]["mean"] for each in results["contrasts"]}
    assert terms["render"] == summary["render_matched"] - summary["graphrag_abstain"]
    assert terms["fine mechanism"] == summary["ledger"] - summary["render_matched"]
    assert terms["coarse mechanism"] == summary["coarse_retain"] - summary["render_matched"]
    assert summary["ledger"] == summary["coarse_retain"] == 1
    assert summary["graphrag_abstain"] == 0


@pytest.mark.parametrize(
    ("step", "failure"),
    [
        (Said("I would say Bo Birch."), "unreadable"),
        (Said('{"reason": "", "answer": ["Bo Birch"]}'), "unreadable"),
        (Said('{"reason": "it sa', finish_reason="length"), "cut"),
        (Said(None, refusal="I will not say."), "refused"),
        (Status(400, "context_length_exceeded"), "refused"),
    ],
)
def test_a_question_without_an_answer_is_counted_and_not_graded(
    step: Step, failure: str, stream: Path
) -> None:
    """Whoever is at fault, it is neither right nor wrong, and the table says how many there are."""
    steps = [step, answer("Stoneby")]
    with ScriptedEndpoint(steps=list(steps)) as endpoint:
        results = evaluate(endpoint, "memab-fc", "--data", stream, "--arms", "llm_only")
    assert [item["failure"] for item in results["items"]] == [failure, None]
    assert right(results) == {"llm_only": 1}
    assert right(results, "failed") == {"llm_only": 0.5}
    told = f"llm_only: 1 of 2 questions failed (1 {failure}); they are neither right nor wrong"
    assert told in results["notes"]


def test_nothing_that_was_answered_is_asked_or_paid_for_again(stream: Path, tmp_path: Path) -> None:
    """Cut in the midst of reading a stream, the next run reads the rest; the cost is of both."""
    out = tmp_path / "out"
    options = ["memab-fc", "--data", stream, "--arms", "verifier_end_to_end", "--out", out]
    options += ["--price", "scripted-1=1000000/2000000"]
    with ScriptedEndpoint(always=first_name) as endpoint:
        whole = evaluate(endpoint, *options[:-4], "--out", tmp_path / "other", *options[-2:])
        expected, calls = whole["notes"][-1], len(endpoint.asked)
    seen = 0

    def dies(body: Any) -> Step:
        nonlocal seen
        seen += 1
        return first_name(body) if seen < 3 else Status(401, "invalid_api_key")

    with ScriptedEndpoint(always=dies) as endpoint:
        done = standfast_at(endpoint, "evaluate", *options, "--reader", "openai")
        assert done.returncode == 2
    answers = out / ANSWERS_NAME
    assert len(answers.read_bytes().splitlines()) == 2
    with answers.open("ab") as file:
        file.write(b'{"request": "cut sh')
    with ScriptedEndpoint(always=first_name) as endpoint:
        results = evaluate(endpoint, *options)
        assert len(endpoint.asked) == calls - 2
    assert results["items"] == whole["items"]
    cost = 600 + 6 * 2 * 20
    (line,) = (re.sub(r"[0-9.]+ s;", "- s;", note[-1]) for note in [results["notes"]])
    assert line == f"6 calls: 600 tokens in, 120 out, - s; cost {cost}"
    assert re.sub(r"[0-9.]+ s;", "- s;", expected) == line
