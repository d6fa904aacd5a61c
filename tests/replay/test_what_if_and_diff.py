"""What-if equals doing it, and leaves the state alone; a diff names what differs and no more."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings

from processor.engine.authority import UNRESTRICTED
from processor.engine.conversation import Conversation
from processor.engine.record import Record
from processor.engine.snapshot import dump, load
from processor.engine.turn import run_turn
from processor.engine.verify import grade
from processor.interpreter.native import parse_formulas
from processor.render.view import state_view
from replay.diff import diff_events, diff_maps, diff_views, fold_under
from replay.diff_stores import diff_stores
from replay.store import Store
from replay.what_if import what_if
from schemas.derived import Grade
from schemas.operations import InlineRecord, Revise
from schemas.wire import canonical_bytes, decode_log_event
from tests.app.test_one_process import run, statement
from tests.histories.record import HERE
from tests.properties.engine_driver import folded
from tests.replay.test_store import standfast
from tests.strategies_streams import ONE_CONVERSATION, Stream, streams


def conversation_of(stream: Stream) -> Conversation:
    """The one conversation of a stream."""
    (conversation,) = folded(stream).conversations.values()
    return conversation


def withdrawn(conversation: Conversation, record: str) -> Conversation:
    """A copy in which somebody revises the record."""
    copy = load(dump(conversation))
    by = InlineRecord(record="imagined", claim="no")
    revise = Revise(op="revise", target=record, by=by)
    transition, outcome = run_turn(
        copy.state, copy.turn + 1, "ann", None, parse_formulas((revise,)), UNRESTRICTED
    )
    assert outcome.applied == (0,)
    transition.commit()
    return copy


def grades(records: dict[str, Record]) -> dict[str, Grade]:
    """How each record is grounded."""
    return {id_: grade(record) for id_, record in records.items() if id_ != "imagined"}


@settings(max_examples=30)
@given(streams(10, ONE_CONVERSATION))
def test_what_if_equals_doing_it(stream: Stream) -> None:
    """For every record the answers are those after a real withdrawal, and nothing changes."""
    conversation = conversation_of(stream)
    before = dump(conversation)
    for id_, record in conversation.state.records.items():
        if not record.stands:
            continue
        imagined = what_if(conversation.state, [id_])
        done = withdrawn(conversation, id_).state.records
        now = grades(conversation.state.records) | {
            answer.record: answer.after for answer in imagined.answers
        }
        assert now == grades(done)
        assert set(imagined.newly_ungrounded) == {
            other
            for other, each in conversation.state.records.items()
            if each.grounded and not done[other].grounded and other != id_
        }
    assert dump(conversation) == before


def scenario(name: str, folder: Path) -> Path:
    """The store of a scenario."""
    done = standfast("run", Path("processor/scenarios") / f"{name}.jsonl", "--out", folder)
    assert done.returncode == 0
    return folder / "standfast.duckdb"


def test_on_the_deliberation_a3_gives_exactly_the_decision(tmp_path: Path) -> None:
    """Withdrawing a3 after turn 17 would unground d1 alone, and the store is as it was."""
    path = scenario("deliberation", tmp_path)
    stored = path.read_bytes()
    asked = ("--db", path, "--conversation", "deliberation", "--json")
    done = standfast("replay", "what-if", "--retract", "a3", *asked)
    told = orjson.loads(done.stdout)
    assert done.returncode == 0
    assert (told["transitive"], told["decisions"]) == (["d1"], ["d1"])
    assert {answer["record"] for answer in told["answers"]} == {"a3", "d1"}
    unknown = standfast("replay", "what-if", "--retract", "a3,zz", *asked)
    assert (unknown.returncode, unknown.stdout) == (2, b"")
    assert b"zz" in unknown.stderr
    assert path.read_bytes() == stored


def test_a_diff_of_two_turns_names_what_happened_between(tmp_path: Path) -> None:
    """What one turn withdrew shows as a changed standing, and what it introduced as new."""
    lines = [statement(1), statement(2)]
    by = {"record": "n", "claim": "no"}
    lines += [{**statement(3), "operations": [{"op": "revise", "target": "o1", "by": by}]}]
    run(tmp_path, list(lines))
    path = tmp_path / "store.duckdb"
    with Store(path, read_only=True) as store:
        left, right = (store.conversation_at("default", "c", turn) for turn in (2, 3))
    assert left is not None
    assert right is not None
    found = diff_maps(left, right)
    assert found.only_left == {}
    assert found.only_right == {"records": ["n"], "attacks": [["n", "o1"]]}
    assert found.changed["records"]["o1"]["standing"] == ("active", "abandoned")
    assert found.changed["records"]["o2"] == {
        "grade": ("grounded", "ungrounded"),
        "grounded": (True, False),
    }
    assert diff_maps(left, left).is_empty
    where = ("--db", path, "--conversation", "c", "--turn", "2", "--turn", "3")
    done = standfast("replay", "diff", *where, "--fail-different", "--json")
    assert done.returncode == 1
    assert orjson.loads(done.stdout)["only_right"]["records"] == ["n"]
    assert standfast("replay", "diff", *where).returncode == 0


@settings(max_examples=20)
@given(streams(8, ONE_CONVERSATION), streams(8, ONE_CONVERSATION))
def test_an_empty_diff_means_equal_maps(one: Stream, other: Stream) -> None:
    """A diff is empty exactly if the two maps have the same parts."""
    left, right = (
        orjson.loads(canonical_bytes(state_view(conversation_of(stream))))
        for stream in (one, other)
    )
    parts = ("records", "attacks", "commitments", "problems", "disputed", "agents")
    assert diff_views(left, right).is_empty == all(left[part] == right[part] for part in parts)


def test_a_diff_of_two_stores_names_the_first_event_that_differs(tmp_path: Path) -> None:
    """Of three conversations, the longer, the other and the lacking one are told."""
    for name, speaker, count in (("a", "ann", 4), ("b", "bob", 6)):
        (tmp_path / name).mkdir()
        lines = [statement(number, conversation="same") for number in (1, 2)]
        lines += [statement(number, conversation="longer") for number in range(1, count)]
        other = [statement(1, conversation="other"), statement(2, "other", speaker=speaker)]
        run(tmp_path / name, [*lines, *other, statement(1, conversation=f"only-{name}")])
    found = diff_stores(*(tmp_path / name / "store.duckdb" for name in "ab"))
    assert [each[1:] for each in found] == [
        ("longer", 3, 5, 4),
        ("only-a", 1, 0, 1),
        ("only-b", 0, 1, 1),
        ("other", 2, 2, 2),
    ]


def test_a_history_folds_alike_under_the_rules_it_was_written_under() -> None:
    """Under its own rules no derived event and no part of the map differs."""
    *lines, _ = (HERE / "incident-with-candidates-rules1.jsonl").read_bytes().splitlines()
    events = [decode_log_event(line) for line in lines]
    ids = (events[0].tenant_id, events[0].conversation_id)
    one, ours = fold_under(events, 1, ids)
    other, theirs = fold_under(events, 1, ids)
    assert diff_maps(one, other).is_empty
    assert list(diff_events(ours, theirs)) == []
    changed = [*theirs[:-1], ()]
    assert {each.sequence for each in diff_events(ours, changed)} == {len(events)}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--conversation", "c", "--rules", "1", "--rules", "99"), b"no version 99"),
        (("--conversation", "c", "--turn", "1"), b"give two"),
        (("--conversation", "c", "--turn", "1", "--turn", "9"), b"reached turn 9"),
        (("c", "nobody"), b"'nobody'"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    tmp_path: Path, options: tuple[str, ...], told: bytes
) -> None:
    """Bad usage is status 2, and the line says what is missing."""
    run(tmp_path, [statement(1), statement(2)])
    done = standfast("replay", "diff", "--db", tmp_path / "store.duckdb", *options)
    assert (done.returncode, done.stdout) == (2, b"")
    assert told in done.stderr
    assert done.stderr.count(b"\n") == 1
