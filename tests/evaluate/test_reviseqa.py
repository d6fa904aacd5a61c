"""ReviseQA's edits on a scenario of our own: what is told, what stands, what is handed over."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from processor.engine.conversation import Conversation
from processor.interpreter.native import NATIVE
from processor.interpreter.port import Interpreted, Reading, Refused
from replay.evaluate.adapters.reviseqa_edits import read_revised, told
from replay.evaluate.benchmark import END_TO_END, LLM_ONLY, RAG, Options
from replay.evaluate.benchmark import NATIVE as NATIVE_ARM
from replay.evaluate.folding import fold_native
from replay.evaluate.suites.reviseqa import NO_RETRACTION, ReviseQA
from schemas.utterance import Utterance

RAIN, WET, DRY, SUN = "rain(Ada)", "∀x (rain(x) → wet(x))", "¬wet(Ada)", "sun(Ada)"
WORDS = {RAIN: "Ada is in the rain.", WET: "Who is in the rain is wet.", DRY: "Ada is dry."}
WORDS[SUN] = "Ada is in the sun."


def edit(answer: str, *context: str) -> dict[str, Any]:
    """One edit in the published format."""
    return {
        "edited_context_fol": list(context),
        "edited_natural_language_context": [WORDS[each] for each in context],
        "conclusion": "Ada is wet.",
        "conclusion_fol": "wet(Ada)",
        "answer": answer,
    }


SCENARIO = {
    "id": "ex_1",
    "original_context": [WORDS[RAIN], WORDS[WET], WORDS[SUN]],
    "original_context_fol": [RAIN, WET, SUN],
    "edits": [
        edit("False", DRY, WET, DRY, SUN),
        edit("False", DRY, WET),
        edit("True", DRY, WET, RAIN),
        edit("True", RAIN, WET),
    ],
}
"""The third edit contradicts itself, and the second only takes away."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of the scenario."""
    path = tmp_path / "scenarios.jsonl"
    path.write_bytes(orjson.dumps(SCENARIO) + b"\n")
    return path


class Gold:
    """Reads what the utterances of a scenario say themselves."""

    def __init__(self, utterances: tuple[Utterance, ...]) -> None:
        self._operations = {each.utterance_id: each.operations or () for each in utterances}

    async def interpret(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """The operations of the utterance."""
        provenance = NATIVE.model_copy(update={"tokens_in": 7})
        return Reading(provenance, self._operations[utterance.utterance_id])


def test_an_edit_observes_what_is_new_and_revises_what_is_gone(path: Path) -> None:
    """By the first new premise, or by a record of its own if the edit only takes away."""
    (scenario,) = read_revised(path)
    telling = told(scenario)
    said = [
        [(each.op, getattr(each, "record", None) or getattr(each, "target", None)) for each in ops]
        for ops in (utterance.operations or () for utterance in telling.utterances)
    ]
    assert said == [
        [("observe", "p0"), ("observe", "p1"), ("observe", "p2")],
        [("observe", "p3"), ("revise", "p0")],
        [("revise", "p2")],
        [("observe", "p4")],
        [("revise", "p3")],
    ]
    records = fold_native(telling.utterances).state.records
    standing = [telling.formulas[id_] for id_, r in records.items() if r.stands and id_[0] == "p"]
    assert standing == [WET, RAIN]
    assert telling.utterances[1].text == (
        "No longer true: Ada is in the rain. Now true: Ada is dry."
    )


def test_accuracy_at_k_ends_where_nothing_can_be_said(path: Path) -> None:
    """The contradictory edit is neither right nor wrong, and what follows it has no accuracy@k."""
    workload = ReviseQA(Options(path))
    scored = {
        (item.id, arm): workload.measure(item, arm)
        for item in workload.items
        for arm in (NATIVE_ARM, NO_RETRACTION)
    }
    of_native = [scored[item.id, NATIVE_ARM] for item in workload.items]
    assert [scores.get("right") for scores in of_native] == [1, 1, None, 1]
    assert [scores.get("conflict") for scores in of_native] == [None, None, 1, None]
    assert [scores["over_retraction"] for scores in of_native] == [0, 0, 0, 0]
    at_k = workload.complete(scored)
    assert [(i.group, at_k.get((i.id, NATIVE_ARM))) for i in workload.items] == [
        ("1", {"accuracy_at_k": 1}),
        ("2", {"accuracy_at_k": 1}),
        ("3", None),
        ("4", None),
    ]
    assert at_k[workload.items[1].id, NO_RETRACTION] == {"accuracy_at_k": 0}


def test_every_arm_hands_over_a_context_of_its_own(path: Path) -> None:
    """The verifier hands over what stands, whoever read the edits; the raw text has it all."""
    workload = ReviseQA(Options(path))
    (scenario,) = read_revised(path)
    last = workload.items[-1]
    spent = asyncio.run(workload.interpret(Gold(told(scenario).utterances), workload.items))
    assert spent == {"ingest_tokens": 5 * 7}
    native = workload.question(last, NATIVE_ARM).context
    assert native == f"{WORDS[WET]}\n{WORDS[RAIN]}"
    assert WORDS[RAIN] in workload.question(last, END_TO_END).context
    assert WORDS[DRY] not in workload.question(last, END_TO_END).context
    assert WORDS[DRY] in workload.question(last, LLM_ONLY).context
    assert sorted(workload.question(last, RAG).context.splitlines()) == sorted(native.splitlines())
    assert workload.grade(last, "true.") == {"right": 1}
    assert workload.grade(workload.items[2], "True") == {"conflict": 1}
