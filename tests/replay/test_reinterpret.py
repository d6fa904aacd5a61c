"""Two interpreters on the same utterances: the comparison is the one made by hand."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import orjson

from processor.app.reinterpret import reinterpret
from processor.engine.conversation import Conversation
from processor.interpreter.port import Interpreted, Reading, Unreadable
from processor.scenarios import scenario_bytes, utterances
from replay.opened import opened
from replay.reinterpret import ChangedVerdict, compare_histories, history_of
from replay.store import Store
from schemas.derived import Outcome
from schemas.log import Interpretation
from schemas.operations import Observe
from schemas.utterance import Utterance, UtteranceKind
from tests.audit.stores import make_archive
from tests.replay.test_store import standfast
from tests.strategies_streams import seeded_stream

NAME = "incident-with-candidates"
SECOND = Interpretation(interpreter="recorded", model="second", tokens_in=100, tokens_out=20)


def second_reading(conversation: Conversation, utterance: Utterance) -> Interpreted | None:
    """What the other interpreter says: three turns otherwise than the scenario.

    It takes the withdrawal of u14 for an observation, finds nothing in u15 and cannot read u16.
    """
    assert utterance.operations is None
    if utterance.kind is UtteranceKind.CANDIDATE:
        return None
    if utterance.utterance_id == "u16":
        return Unreadable(SECOND, "no idea")
    if utterance.utterance_id == "u15":
        return Reading(SECOND)
    if utterance.utterance_id == "u14":
        observed = Observe(op="observe", record="x14", claim="There is a staging cluster.")
        return Reading(SECOND, (observed,))
    said = {each.utterance_id: each.operations for each in utterances(NAME)}
    return Reading(SECOND, said[utterance.utterance_id] or ())


def test_the_comparison_on_the_incident_is_the_one_made_by_hand(tmp_path: Path) -> None:
    """Labels, records, verdicts and tokens of a second interpreter, counted by hand."""
    lines = scenario_bytes(NAME).splitlines()
    paths = [tmp_path / "one.duckdb", tmp_path / "two.duckdb"]
    for path, read in zip(paths, (None, second_reading), strict=True):
        with Store(path) as store:
            assert reinterpret(lines, store, read) == 27
    with closing(opened(paths[0])) as one, closing(opened(paths[1])) as two:
        left = history_of(one, paths[0], "default", NAME)
        right = history_of(two, paths[1], "default", NAME)
    found = compare_histories(left, right)
    assert len(found.turns) == 16
    differing = [turn for turn in found.turns if not turn.same_operations]
    assert [turn[:4] for turn in differing] == [
        ("u14", ("revise",), ("observe",), False),
        ("u15", ("observe",), (), False),
        ("u16", ("revise",), None, False),
    ]
    assert found.exact_match == 13 / 16
    assert found.f1 == 2 * 22 / (25 + 23)
    ours, theirs = left.conversation.state.records, right.conversation.state.records
    assert {*ours} - {*theirs} == {"e14", "o15", "e16"}
    assert {*theirs} - {*ours} == {"x14"}
    assert found.record_jaccard == found.claim_jaccard == 16 / 20
    assert found.verdicts == (
        ChangedVerdict("u14", None, "h4", Outcome.UNGROUNDED, None),
        ChangedVerdict("c14a", 0, None, Outcome.UNGROUNDED, Outcome.GROUNDED),
        ChangedVerdict("c14a", 1, None, Outcome.UNGROUNDED, Outcome.GROUNDED),
        ChangedVerdict("c15a", 0, None, Outcome.ABSTAIN, Outcome.GROUNDED),  # o15 disputed o6
    )
    assert found.cost_left[:2] == (0, 0)
    assert found.cost_right[:2] == (16 * 100, 16 * 20)


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
