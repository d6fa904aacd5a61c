"""`standfast evaluate operations`: the scores, and what the command writes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from processor.engine.conversation import Conversation
from processor.interpreter.port import Interpreted, Interpreter, Reading, Refused, Unreadable
from processor.interpreter.prompts import Condition
from replay.evaluate.operations import (
    SCENARIOS,
    GoldInterpreter,
    LabelledTurn,
    label_scenario,
    score,
)
from replay.evaluate.operations_report import Spread, results, summarise, table
from replay.evaluate.operations_runs import RUNS_NAME, Run, Subject
from schemas.log import Interpretation
from schemas.utterance import Utterance
from tests.cli.test_commands import standfast

MODEL = Interpretation(interpreter="scripted", tokens_in=100, tokens_out=20)


def labelled(
    *gold: str, read: tuple[str, ...] | None, is_key_shift: bool = False, scenario: str = "s"
) -> LabelledTurn:
    """A turn with this gold label and this answer."""
    failed = "cut off" if read is None else None
    return LabelledTurn(
        scenario=scenario,
        utterance_id="u",
        turn=1,
        is_key_shift=is_key_shift,
        gold=gold,
        read=read,
        failed=failed,
        tokens_in=100,
        tokens_out=20,
    )


def turns_of(interpreter: Interpreter, name: str) -> list[LabelledTurn]:
    """All turns of a scenario as an interpreter reads them."""

    async def collect() -> list[LabelledTurn]:
        return [turn async for turn in label_scenario(interpreter, name)]

    return asyncio.run(collect())


class Watching:
    """Reads nothing in any turn and notes what it was shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[Utterance, int, int]] = []

    async def interpret(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """Nothing, or, in the first turn, a failure."""
        self.seen.append((utterance, conversation.turn, len(conversation.state.records)))
        return Reading(MODEL) if conversation.turn else Unreadable(MODEL, "cut off")


def test_scores_count_labels_over_all_turns() -> None:
    """Two of three labels are right and one is missing: precision and recall are two thirds."""
    turns = [
        labelled("observe", "question", read=("observe",)),
        labelled("revise", read=("undermine", "revise")),
    ]
    assert score(turns) == (2, 0, 2 / 3, 2 / 3, 2 / 3, 0.0)
    assert score([*turns, labelled("support", read=("support",))]).exact_match == 1 / 3


def test_an_unreadable_turn_costs_recall_and_is_counted() -> None:
    """A failure is neither an empty answer nor left out, also where nothing was to be found."""
    turns = [labelled("observe", read=None), labelled("observe", read=("observe",))]
    assert score(turns) == (2, 1, 1.0, 0.5, 2 / 3, 0.5)
    assert score([labelled(read=None)]).exact_match == 0
    assert score([labelled(read=())]) == (1, 0, 1.0, 1.0, 1.0, 1.0)
    assert score([]) == (0, 0, 1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "turns", "key_shifts"),
    [
        ("incident", 13, [7, 9, 13]),
        ("deliberation", 19, [4, 5, 9, 10, 14, 16, 17]),
    ],
)
def test_gold_is_read_perfectly(name: str, turns: int, key_shifts: list[int]) -> None:
    """Gold operations score 1, and the turns in which a standing changes are known."""
    # In turn 12 of the incident a record is given up that was given up before.
    read = turns_of(GoldInterpreter(), name)
    assert score(read) == (turns, 0, 1.0, 1.0, 1.0, 1.0)
    assert [turn.turn for turn in read if turn.is_key_shift] == key_shifts


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_interpreter_sees_words_and_the_gold_state_before_them(name: str) -> None:
    """The operations are taken away, and each turn is read in the state of all turns before it."""
    watching = Watching()
    read = turns_of(watching, name)
    assert all(utterance.operations is None for utterance, _, _ in watching.seen)
    assert [turn for _, turn, _ in watching.seen] == list(range(len(read)))
    counts = [count for _, _, count in watching.seen]
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[-1] >= 15
    assert (read[0].read, read[0].failed) == (None, "cut off")
    assert score(read).unreadable == 1


def test_several_runs_give_their_mean_and_range() -> None:
    """A figure over several runs tells its mean, lowest and highest; key shifts stand apart."""
    right = labelled("revise", read=("revise",), is_key_shift=True)
    wrong = labelled("revise", read=("undermine",), is_key_shift=True)
    calm = labelled("observe", read=("observe",))
    subject: Subject = {"interpreter": "scripted", "model": None}
    runs = [
        Run(subject=subject, condition="minimal", run=number, items=(turn, calm))
        for number, turn in enumerate((right, wrong), 1)
    ]
    (row,) = summarise(runs)
    assert (row.runs, row.turns, row.key_shifts, row.tokens_per_turn) == (2, 2, 1, 120)
    assert row.f1 == Spread(0.75, 0.5, 1.0)
    assert row.key_shift_f1 == Spread(0.5, 0.0, 1.0)
    assert "| s | minimal | 2 | 2 | 0.75 (0.50 to 1.00) |" in table(subject, runs)
    assert results(subject, runs)["runs"] == runs


def test_the_command_writes_items_and_a_table(tmp_path: Path) -> None:
    """With gold operations every condition scores 1; results.json has every item of every run."""
    done = standfast("evaluate", "operations", "--runs", "2", "--out", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == (tmp_path / "operations.md").read_text()
    measured = orjson.loads((tmp_path / "results.json").read_bytes())
    assert len(measured["runs"]) == 2 * len(Condition)
    assert {len(run["items"]) for run in measured["runs"]} == {13 + 19}
    assert {row["f1"]["lowest"] for row in measured["summary"]} == {1.0}
    assert {row["key_shift_exact_match"]["mean"] for row in measured["summary"]} == {1.0}
    assert len(measured["summary"]) == len(SCENARIOS) * len(Condition)


def test_finished_runs_are_not_done_again(tmp_path: Path) -> None:
    """A second command on the same folder does the missing runs alone, also after a torn write."""
    once = ("evaluate", "operations", "--conditions", "minimal", "--out", str(tmp_path))
    assert standfast(*once).returncode == 0
    kept = tmp_path / RUNS_NAME
    first = kept.read_bytes()
    with kept.open("ab") as torn:
        torn.write(b'{"condition": "minimal", "ru')
    done = standfast(*once, "--runs", "2")
    assert (done.returncode, done.stderr) == (0, b"")
    after = kept.read_bytes()
    assert after.startswith(first)
    assert [orjson.loads(line)["run"] for line in after.splitlines()] == [1, 2]


def test_runs_of_another_subject_are_not_mixed(tmp_path: Path) -> None:
    """A folder with the runs of another model, or with a damaged line, is refused in one line."""
    once = ("evaluate", "operations", "--conditions", "minimal", "--out", str(tmp_path))
    assert standfast(*once).returncode == 0
    kept = tmp_path / RUNS_NAME
    ours = kept.read_bytes()
    for line, named in (
        (ours.replace(b'"native","model":null', b'"native","model":"other"'), "another model"),
        (b"{}\n", "runs.jsonl:1: "),
    ):
        kept.write_bytes(line)
        done = standfast(*once)
        assert done.returncode == 2
        assert done.stderr.count(b"\n") == 1
        assert named in done.stderr.decode()


def test_the_command_prints_json_and_takes_a_choice_of_conditions() -> None:
    """`--json` prints all results; only the conditions that were asked for are run."""
    done = standfast("evaluate", "operations", "--json", "--conditions", "minimal, definitions")
    assert done.returncode == 0
    measured = orjson.loads(done.stdout)
    assert [run["condition"] for run in measured["runs"]] == ["minimal", "definitions"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["operations", "--conditions", "none"], "state_augmented"),
        (["operations", "--runs", "0"], "--runs"),
        (["nothing"], "nothing"),
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], named: str) -> None:
    """An unknown condition, benchmark or number of runs is named on one line, with status 2."""
    done = standfast("evaluate", *arguments)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert named in done.stderr.decode()


def test_help_lists_the_benchmarks() -> None:
    """`standfast evaluate --help` names what can be measured."""
    assert b"operations" in standfast("evaluate", "--help").stdout
