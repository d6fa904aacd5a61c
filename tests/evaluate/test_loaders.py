"""Loaders of the published formats, on small samples of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from processor.cli.errors import BadInputError
from processor.cli.evaluate import evaluate
from replay.evaluate.adapters import AdapterError
from replay.evaluate.adapters.conversations import Turn, beam, locomo, longmemeval
from replay.evaluate.benchmark import Benchmark, Options, Scores
from replay.evaluate.suites.conversations import BEAM, LOCOMO, LONGMEMEVAL
from replay.evaluate.suites.unpublished import ESR_BENCH, OURS, RECON


def json_file(path: Path, content: Any) -> Path:
    """A file with this JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(content))
    return path


def lines(path: Path, *contents: Any) -> Path:
    """A file of JSON Lines."""
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in contents))
    return path


def scores(benchmark: Benchmark, data: Path, arm: str) -> dict[str, Scores]:
    """What an arm scores, by item."""
    workload = benchmark.load(Options(data))
    return {item.id: workload.measure(item, arm) for item in workload.items}


LOCOMO_SAMPLE = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "session_10": [{"speaker": "Bob", "dia_id": "D10:1", "text": "The boat is green."}],
            "session_2_date_time": "noon",
            "session_2": [
                {
                    "speaker": "Ann",
                    "dia_id": "D2:1",
                    "text": "Look!",
                    "blip_caption": "a red kite",
                }
            ],
        },
        "qa": [
            {
                "question": "What colour is the boat?",
                "answer": "green",
                "evidence": ["D10:1; D2:1"],
                "category": 4,
            },
            {"question": "Who sings?", "evidence": ["D"], "category": 5},
        ],
    }
]


def test_locomo_sessions_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """Evidence ids are found in whatever way they are listed; pictures are told in words."""
    (talk,) = locomo(json_file(tmp_path / "locomo.json", LOCOMO_SAMPLE))
    assert talk.turns == (
        Turn("D2:1", "Ann", "Look! [shares a picture: a red kite]"),
        Turn("D10:1", "Bob", "The boat is green."),
    )
    assert [each.evidence for each in talk.queries] == [("D10:1", "D2:1"), ()]
    assert [each.group for each in talk.queries] == ["single-hop", "adversarial"]
    found = scores(LOCOMO, tmp_path / "locomo.json", "rag")
    assert found["conv-1 q0"]["all_evidence"] == 1
    assert "all_evidence" not in found["conv-1 q1"]


LONGMEMEVAL_SAMPLE = [
    {
        "question_id": "q1",
        "question_type": "knowledge-update",
        "question": "How many plants does the user have?",
        "answer": 5,
        "question_date": "2023/05/30",
        "haystack_session_ids": ["a", "b"],
        "haystack_dates": ["2023/05/20", "2023/05/25"],
        "haystack_sessions": [
            [{"role": "user", "content": "I have three plants.", "has_answer": True}],
            [
                {"role": "user", "content": "I got two more plants, five now.", "has_answer": True},
                {"role": "assistant", "content": "How nice!"},
            ],
        ],
        "answer_session_ids": ["a", "b"],
    }
]


def test_longmemeval_marks_the_evidence_that_was_revised(tmp_path: Path) -> None:
    """Of a knowledge update all evidence but the last was replaced."""
    path = json_file(tmp_path / "longmemeval_s.json", LONGMEMEVAL_SAMPLE)
    (talk,) = longmemeval(path)
    (query,) = talk.queries
    assert (query.evidence, query.revised, query.answer) == (("0:0", "1:0"), ("0:0",), "5")
    assert scores(LONGMEMEVAL, path, "llm_only")["q1"]["evidence_recall"] == 1


BEAM_CHAT = [
    {
        "batch_number": 1,
        "turns": [
            [
                {"role": "user", "id": 0, "content": "The answer takes 400 ms."},
                {"role": "assistant", "id": 1, "content": "That is slow."},
            ],
            [{"role": "user", "id": 2, "content": "Now the answer takes 250 ms."}],
        ],
    }
]
BEAM_QUESTIONS = {
    "knowledge_update": [
        {
            "question": "How long does the answer take?",
            "answer": "250 ms",
            "source_chat_ids": {"original_info": [0], "updated_info": [2]},
        }
    ],
    "abstention": [{"question": "Who wrote it?", "ideal_response": "There is no information."}],
}


def test_beam_reads_every_chat_below_a_folder(tmp_path: Path) -> None:
    """Evidence ids come as lists or as lists by role; what an update replaced is revised."""
    json_file(tmp_path / "100K" / "1" / "chat.json", BEAM_CHAT)
    json_file(
        tmp_path / "100K" / "1" / "probing_questions" / "probing_questions.json", BEAM_QUESTIONS
    )
    (talk,) = beam(tmp_path)
    assert [turn.id for turn in talk.turns] == ["0", "1", "2"]
    update, abstention = talk.queries
    assert (update.evidence, update.revised) == (("0", "2"), ("0",))
    assert abstention.answer == "There is no information."
    found = scores(BEAM, tmp_path, "rag")
    assert found["100K/1 knowledge_update 0"]["revised_shown"] == 1


def test_a_folder_without_chats_is_refused(tmp_path: Path) -> None:
    """The error says what is missing."""
    with pytest.raises(AdapterError, match=r"there is no chat\.json"):
        list(beam(tmp_path))


def test_json_of_another_shape_is_named_with_its_field(tmp_path: Path) -> None:
    """File and field stand in the error."""
    path = json_file(tmp_path / "locomo.json", [{"sample_id": "x"}])
    with pytest.raises(AdapterError, match=r"locomo\.json: 0\.conversation: Field required"):
        list(locomo(path))
    path.write_text("[")
    with pytest.raises(AdapterError, match=r"locomo\.json: "):
        list(locomo(path))


def test_recon_scenarios_are_answered_by_the_closure(tmp_path: Path) -> None:
    """One step finds the first step alone; a scenario of one step is right either way."""
    steps = [
        {"id": "s1", "depends_on": ["fact"]},
        {"id": "s2", "depends_on": ["s1", "other"]},
        {"id": "s3", "depends_on": ["other"]},
    ]
    path = lines(
        tmp_path / "recon.jsonl",
        {"id": "a", "steps": steps, "removed": "fact", "affected": ["s1", "s2"]},
        {"id": "b", "steps": steps, "removed": "s1", "affected": ["s2"]},
    )
    closure, one_step = (scores(RECON, path, arm) for arm in RECON.arms)
    assert [closure[id_]["exact"] for id_ in "ab"] == [1, 1]
    assert [one_step[id_]["exact"] for id_ in "ab"] == [0, 1]
    assert closure["a"]["over_retraction"] == 0


def esr_question(id_: str, phenomenon: str, gold: str | None, **more: Any) -> dict[str, Any]:
    """A question about the time-out of the pool."""
    said = [("e1", "30 s", "user"), ("e2", "60 s", "user"), ("e3", "30 s", "user")]
    atoms = [
        {
            "event_id": event,
            "entity": "pool",
            "attribute": "timeout",
            "value": value,
            "time": f"2020-0{place}",
            "source_role": role,
        }
        for place, (event, value, role) in enumerate(more.pop("said", said), 1)
    ]
    return {
        "question_id": id_,
        "phenomenon": phenomenon,
        "question": "Which time-out is in force?",
        "gold_answer": gold,
        "atoms": atoms,
        **more,
    }


def test_esr_bench_asks_for_the_value_in_force_and_the_one_before(tmp_path: Path) -> None:
    """The value before is what the last deprecated event says; null is an abstention."""
    path = lines(
        tmp_path / "esr.jsonl",
        esr_question("q1", "reverted-revert", "30 s", gold_deprecated_event_ids=["e1", "e2"]),
        esr_question(
            "q2",
            "cross-source conflict",
            None,
            said=[("e1", "30 s", "user"), ("e2", "60 s", "maintainer")],
        ),
    )
    found = {arm: scores(ESR_BENCH, path, arm) for arm in ESR_BENCH.arms}
    assert found["ledger"] == {id_: {"exact": 1} for id_ in ("q1", "q1 before", "q2")}
    assert found["coarse_discard"]["q1 before"] == {"exact": 0}
    assert found["graphrag_abstain"]["q1"] == {"exact": 0}
    assert found["latest_only"]["q2"] == {"exact": 0}
    path.write_bytes(orjson.dumps(esr_question("q3", "monotonic", "x", said=[])))
    with pytest.raises(AdapterError, match="atoms: there are none"):
        ESR_BENCH.load(Options(path))


RECON_LINE: dict[str, Any] = {
    "id": "c",
    "steps": [{"id": "s1", "depends_on": ["p1"]}],
    "removed": "p1",
    "affected": ["s1"],
}
ESR_LINE: dict[str, Any] = {
    "question_id": "q",
    "phenomenon": "monotonic",
    "question": "Which?",
    "gold_answer": "x",
    "atoms": [{"event_id": "e1", "entity": "a", "attribute": "b", "value": "x"}],
}


def with_atom(**fields: object) -> dict[str, Any]:
    """A question whose only atom has these fields."""
    return {"atoms": [{**ESR_LINE["atoms"][0], **fields}]}


@pytest.mark.parametrize(
    ("name", "second", "complaint"),
    [
        ("recon", {"removed": "p9"}, ":2: removed: there is no step or premise 'p9'"),
        ("recon", {"steps": [{"id": "s 1"}]}, ":2: record: String should match"),
        ("recon", {"steps": [{"id": "s1", "depends_on": ["s1"]}]}, ":2: u0: 's1' is not known"),
        ("recon", {"id": "c"}, ": two items are called 'c'"),
        ("recon", {"affected": 1}, ":2: affected: Input should be a valid"),
        ("esr-bench", {"atoms": []}, ":2: atoms: there are none"),
        ("esr-bench", with_atom(time="yesterday"), ":2: valid_from: this is no year"),
        ("esr-bench", with_atom(entity=""), ":2: entity: String should have"),
        ("esr-bench", {"question_id": "q"}, ": two items are called 'q'"),
        ("esr-bench", {"gold_answer": 5}, ":2: gold_answer: Input should be a valid"),
    ],
)
def test_a_line_in_another_form_is_one_line_that_names_it(
    tmp_path: Path, name: str, second: dict[str, Any], complaint: str
) -> None:
    """File, line and field; nothing of another form is measured."""
    first = RECON_LINE if name == "recon" else ESR_LINE
    other = {**first, ("id" if name == "recon" else "question_id"): "other", **second}
    path = tmp_path / "data.jsonl"
    path.write_bytes(orjson.dumps(first) + b"\n" + orjson.dumps(other))
    done = CliRunner().invoke(evaluate, [name, "--data", str(path)])
    assert isinstance(done.exception, BadInputError)
    assert str(done.exception).startswith(f"{path}{complaint}")
    assert "\n" not in str(done.exception)


@pytest.mark.parametrize("name", ["recon", "esr-bench"])
def test_what_is_printed_says_that_the_format_is_ours(tmp_path: Path, name: str) -> None:
    """Whoever reads the table is told that the published file was never seen."""
    path = tmp_path / "data.jsonl"
    path.write_bytes(orjson.dumps(RECON_LINE if name == "recon" else ESR_LINE))
    done = CliRunner().invoke(evaluate, [name, "--data", str(path)])
    assert done.exit_code == 0
    assert f"- {OURS}" in done.output.splitlines()
    help_text = " ".join(CliRunner().invoke(evaluate, [name, "--help"]).output.split())
    assert "field names of ours" in help_text
