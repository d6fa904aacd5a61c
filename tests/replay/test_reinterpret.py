"""Two interpreters on the same utterances: the comparison is the one made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from processor.scenarios import utterances
from tests.audit.stores import make_archive
from tests.interpreter.scripted_endpoint import (
    MODEL,
    Json,
    Said,
    ScriptedEndpoint,
    claims,
    operations,
)
from tests.interpreter.with_endpoint import standfast_at
from tests.replay.test_store import standfast
from tests.strategies_streams import seeded_stream

NAME = "incident-with-candidates"
SOURCE = Path("processor/scenarios") / f"{NAME}.jsonl"
SAID = {each.text: each for each in utterances(NAME)}
STATEMENTS = 16
DRAFTS_READ = 2
"""One that brings no claims, and a claim of c09b that names no record."""


def second_model(body: Json) -> Said:
    """What the other interpreter says: three turns otherwise than the scenario.

    It takes the withdrawal of u14 for an observation, finds nothing in u15 and cannot read u16. It
    finds no claim in any draft that it is asked about.
    """
    told = body["messages"][-1]["content"].splitlines()
    words = next(line for line in reversed(told) if line.startswith('{"speaker"'))
    said = SAID.get(orjson.loads(words)["text"])
    if said is None or said.operations is None:
        return claims()
    if said.utterance_id == "u16":
        return Said(None, refusal="No idea.")
    if said.utterance_id == "u15":
        return operations()
    if said.utterance_id == "u14":
        observed = {"op": "observe", "record": "x14", "claim": "There is a staging cluster."}
        return operations(observed)
    return operations(*(each.model_dump(mode="json") for each in said.operations))


def reinterpreted(first: Path, out: Path, *arguments: object) -> Json:
    """The comparison of the incident with another reading of it."""
    asked = ("replay", "reinterpret", "--db", first, "--input", SOURCE, "--out", out, "--json")
    done = standfast_at(None, *asked, *arguments)
    assert (done.returncode, done.stderr) == (0, b"")
    (compared,) = orjson.loads(done.stdout)["conversations"]
    return dict(compared)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The incident as it was told."""
    folder = tmp_path_factory.mktemp("first")
    assert standfast("run", SOURCE, "--out", folder).returncode == 0
    return folder / "standfast.duckdb"


@pytest.fixture(scope="module")
def cassette(tmp_path_factory: pytest.TempPathFactory, first: Path) -> Path:
    """The answers of the second model, recorded by reading the incident with it."""
    folder = tmp_path_factory.mktemp("second")
    asked = ("replay", "reinterpret", "--db", first, "--input", SOURCE, "--out", folder)
    told = ("--interpreter", "openai", "--record", folder / "answers.jsonl")
    with ScriptedEndpoint(always=second_model) as endpoint:
        done = standfast_at(endpoint, *asked, *told, "--price", f"{MODEL}=10000/50000")
    assert (done.returncode, done.stderr) == (0, b"")
    last = done.stdout.splitlines()[-1]
    assert last.startswith(b"  right: 18 calls for 18 utterances, 1,800 tokens in, 360 out, ")
    assert last.endswith(b", cost 36")
    return folder / "answers.jsonl"


def test_the_comparison_on_the_incident_is_the_one_made_by_hand(
    tmp_path: Path, first: Path, cassette: Path
) -> None:
    """Labels, records, verdicts and tokens of a recorded interpreter, counted by hand."""
    found = reinterpreted(first, tmp_path, "--interpreter", "recorded", "--cassette", cassette)
    turns = found["turns"]
    assert len(turns) == STATEMENTS
    differing = [turn for turn in turns if not turn["same_operations"]]
    assert [(turn["utterance_id"], turn["left"], turn["right"]) for turn in differing] == [
        ("u14", ["revise"], ["observe"]),
        ("u15", ["observe"], []),
        ("u16", ["revise"], None),
    ]
    assert found["exact_match"] == 13 / 16
    assert found["f1"] == 2 * 22 / (25 + 23)
    ours, theirs = records(first), records(tmp_path / "standfast.duckdb")
    assert ours - theirs == {"e14", "o15", "e16"}
    assert theirs - ours == {"x14"}
    assert found["record_jaccard"] == found["claim_jaccard"] == 16 / 20
    named = ("utterance_id", "claim_index", "record", "left", "right")
    assert [tuple(verdict[name] for name in named) for verdict in found["verdicts"]] == [
        ("c09b", 1, None, "ungrounded", None),
        ("c09d", None, None, "unverified", "no_claims"),
        ("u14", None, "h4", "ungrounded", None),
        ("c14a", 0, None, "ungrounded", "grounded"),
        ("c14a", 1, None, "ungrounded", "grounded"),
        ("c15a", 0, None, "abstain", "grounded"),  # o15 disputed o6
    ]
    assert tokens(found["usage_left"]) == (0, 0, 0)
    read = STATEMENTS + DRAFTS_READ
    assert tokens(found["usage_right"]) == (read, 100 * read, 20 * read)
    assert found["usage_right"]["cost"] == "0"  # paid for when it was recorded


def records(store: Path) -> set[str]:
    """The ids of all records at the end of the incident."""
    state = standfast("state", "--db", store, "--conversation", NAME, "--json")
    return {each["record"] for each in orjson.loads(state.stdout)["records"]}


def tokens(usage: Json) -> tuple[Any, ...]:
    """Calls, and tokens read and written."""
    return usage["calls"], usage["tokens_in"], usage["tokens_out"]


def test_what_was_not_recorded_ends_it_in_one_line(tmp_path: Path, cassette: Path) -> None:
    """Another conversation than the recorded one is refused with status 2."""
    source = Path("processor/scenarios/deliberation.jsonl")
    assert standfast("run", source, "--out", tmp_path).returncode == 0
    asked = ("replay", "reinterpret", "--db", tmp_path / "standfast.duckdb", "--input", source)
    told = ("--interpreter", "recorded", "--cassette", cassette, "--out", tmp_path / "new")
    done = standfast(*asked, *told)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"no answer was recorded" in done.stderr


def test_what_ends_half_way_leaves_no_history(tmp_path: Path, first: Path, cassette: Path) -> None:
    """The first answers are there and one is not: nothing is left, and the next try begins anew."""
    answers = cassette.read_bytes().splitlines(keepends=True)
    partial, out = tmp_path / "partial.jsonl", tmp_path / "new"
    partial.write_bytes(b"".join(answers[: len(answers) // 2]))
    asked = ("replay", "reinterpret", "--db", first, "--input", SOURCE, "--out", out)
    told = ("--interpreter", "recorded", "--cassette")
    done = standfast(*asked, *told, partial)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert b"no answer was recorded" in done.stderr
    assert [each.name for each in out.iterdir()] == [".lock"]
    assert standfast(*asked, *told, cassette).returncode == 0
    assert (out / "standfast.duckdb").exists()
    assert not (out / ".writing").exists()


def test_what_was_killed_is_begun_anew(tmp_path: Path, first: Path) -> None:
    """What a killed process left unfinished is thrown away, and so is half a store in it."""
    unfinished = tmp_path / ".writing"
    unfinished.mkdir()
    (unfinished / "standfast.duckdb").write_bytes(b"half of a store")
    found = reinterpreted(first, tmp_path)
    assert found["exact_match"] == 1.0
    assert not unfinished.exists()


def test_a_history_read_alike_has_no_difference(tmp_path: Path) -> None:
    """The command compares an archive with the same utterances read again, and leaves it alone."""
    archive = tmp_path / "archive.duckdb"
    make_archive(archive, seeded_stream(5, 30))
    stored = archive.read_bytes()
    asked = ("replay", "reinterpret", "--db", archive, "--out", tmp_path / "new")
    done = standfast(*asked, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    told = orjson.loads(done.stdout)["conversations"]
    assert len(told) == 3
    for each in told:
        assert (each["f1"], each["exact_match"]) == (1.0, 1.0)
        assert (each["record_jaccard"], each["verdicts"]) == (1.0, [])
    assert archive.read_bytes() == stored
    again = standfast(*asked)
    assert (again.returncode, again.stdout) == (2, b"")
    assert again.stderr.count(b"\n") == 1


def test_a_store_without_utterances_needs_an_input(tmp_path: Path) -> None:
    """What a run leaves holds no words: without --input that is status 2, with it it is read."""
    source = Path("processor/scenarios") / f"{NAME}.jsonl"
    assert standfast("run", source, "--out", tmp_path).returncode == 0
    asked = ("replay", "reinterpret", "--db", tmp_path / "standfast.duckdb")
    refused = standfast(*asked, "--out", tmp_path / "none")
    assert (refused.returncode, refused.stderr.count(b"\n")) == (2, 1)
    done = standfast(*asked, "--out", tmp_path / "new", "--input", source)
    assert done.returncode == 0
    assert b"16 turns, F1 1.000, exact 1.000, records 1.000" in done.stdout
