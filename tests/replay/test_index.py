"""Any turn by one query: the interval rows give what folding the prefix gives, byte for byte."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from processor.engine.conversation import Conversation
from processor.engine.snapshot import dump
from processor.evidence.fold import fold
from processor.render.view import state_view
from processor.scenarios import NAMES, utterances
from replay.index import index, state_at
from replay.opened import opened
from replay.store import Store
from schemas.wire import canonical_bytes
from tests.app.test_one_process import run, statement
from tests.audit.stores import execute
from tests.properties.engine_driver import next_event
from tests.strategies_streams import ONE_CONVERSATION, Stream, seeded_stream

Key = tuple[str, str]
CONVERSATIONS = 10
LENGTH = 12
FURTHER = 100


def fresh_folds(stream: Stream) -> dict[tuple[Key, int], bytes]:
    """The state view after every turn of every conversation, each from folding the prefix."""
    conversations: dict[Key, Conversation] = {}
    views: dict[tuple[Key, int], bytes] = {}
    for said in stream:
        key = (said.get("tenant_id", "default"), said["conversation_id"])
        conversation = conversations.setdefault(key, Conversation.empty(*key))
        views.setdefault((key, 0), canonical_bytes(state_view(conversation)))
        event = next_event(conversation, said)
        if event is None:
            continue
        fold(conversation, event)
        is_first = event.sequence == 1 and event.type == "standfast.setup.v1"
        if is_first or (key, conversation.turn) not in views:
            views[key, conversation.turn] = canonical_bytes(state_view(conversation))
    return views


def indexed(path: Path) -> int:
    """Bring the interval rows up to date."""
    with Store(path) as store:
        return index(store)


def answers(path: Path, asked: list[tuple[Key, int]]) -> dict[tuple[Key, int], bytes]:
    """The same from the interval rows, one query each."""
    with closing(opened(path)) as connection:
        return {
            (key, turn): canonical_bytes(state_at(connection, *key, turn)) for key, turn in asked
        }


def folded_answers(path: Path, asked: list[tuple[Key, int]]) -> dict[tuple[Key, int], bytes]:
    """The same from the newest snapshot before the turn and what the log has after it."""
    found: dict[tuple[Key, int], bytes] = {}
    with Store(path, read_only=True) as store:
        for key, turn in asked:
            conversation = store.conversation_at(*key, turn) or Conversation.empty(*key)
            found[key, turn] = canonical_bytes(state_view(conversation))
    return found


def live_states(path: Path, asked: list[tuple[Key, int]]) -> dict[Key, bytes]:
    """What each conversation is now, in all its parts."""
    with Store(path, read_only=True) as store:
        live = {key: store.conversation(*key) for key, _ in asked}
    return {key: b"" if now is None else dump(now) for key, now in live.items()}


def check(folder: Path, first: int, count: int) -> None:
    """Every turn of so many random conversations, both ways: twice, and after further turns."""
    streams = [
        [
            {**said, "conversation_id": f"s{seed}"}
            for said in seeded_stream(seed, LENGTH, ONE_CONVERSATION)
        ]
        for seed in range(first, first + count)
    ]
    expected: dict[tuple[Key, int], bytes] = {}
    run(folder, [said for stream in streams for said in stream])
    for stream in streams:
        expected |= fresh_folds(stream)
    path = folder / "store.duckdb"
    assert indexed(path) == count
    live, stored = live_states(path, list(expected)), path.read_bytes()
    for _ in range(2):
        assert answers(path, list(expected)) == expected
        assert folded_answers(path, list(expected)) == expected
    assert (live_states(path, list(expected)), path.read_bytes()) == (live, stored)
    run(folder, [further(stream[0], number) for number in range(FURTHER) for stream in streams])
    assert indexed(path) == count
    assert answers(path, list(expected)) == expected
    assert folded_answers(path, list(expected)) == expected


def further(said: dict[str, Any], number: int) -> dict[str, Any]:
    """One more turn of the conversation."""
    own = {"conversation_id": said["conversation_id"], "tenant_id": said["tenant_id"]}
    operation = {"op": "observe", "record": f"later{number}", "claim": "later"}
    return {**statement(number), **own, "utterance_id": f"later{number}", "operations": [operation]}


def test_every_turn_of_random_conversations_is_the_fold_of_its_prefix(tmp_path: Path) -> None:
    """Of ten random conversations every turn is byte-equal, twice and after further turns."""
    check(tmp_path, 100, CONVERSATIONS)


@pytest.mark.thorough
def test_every_turn_of_a_thousand_random_conversations(tmp_path: Path) -> None:
    """The same for a thousand."""
    check(tmp_path, 1_000, 1_000)


@pytest.mark.parametrize("name", NAMES)
def test_every_turn_of_a_scenario_is_the_fold_of_its_prefix(tmp_path: Path, name: str) -> None:
    """With formulas, disputes, agents and drafts too every turn is byte-equal."""
    said = [
        {**each.model_dump(mode="json", exclude_none=True), "at": each.at.isoformat()}
        for each in utterances(name)
    ]
    run(tmp_path, list(said))
    indexed(path := tmp_path / "store.duckdb")
    expected = fresh_folds(said)
    assert len(expected) > 2
    assert answers(path, list(expected)) == expected


def test_indexing_again_changes_nothing(tmp_path: Path) -> None:
    """A store whose logs have not grown is left as it is, and a turn that is not there is none."""
    run(tmp_path, [statement(number) for number in range(1, 4)])
    path = tmp_path / "store.duckdb"
    assert indexed(path) == 1
    assert indexed(path) == 0
    with closing(opened(path)) as connection:
        assert state_at(connection, "default", "c", 4) is None
        assert state_at(connection, "default", "nobody", 1) is None


def test_an_altered_interval_row_is_made_again(tmp_path: Path) -> None:
    """The log is the truth: without its mark, a conversation is indexed anew from it."""
    run(tmp_path, [statement(number) for number in range(1, 4)])
    indexed(path := tmp_path / "store.duckdb")
    expected = answers(path, [(("default", "c"), 3)])
    execute(path, ["UPDATE record_versions SET claim = 'x'", "DELETE FROM indexed"])
    indexed(path)
    assert answers(path, [(("default", "c"), 3)]) == expected


def test_atoms_with_facets_and_a_policy_are_in_the_rows(tmp_path: Path) -> None:
    """What atoms imply, their facets, and the policy in force are byte-equal at every turn."""
    values = ("30 s", "60 s", "not 30 s", "30 s exactly")
    said: list[dict[str, Any]] = [
        {
            "conversation_id": "c",
            "utterance_id": "s",
            "speaker": "ops",
            "at": "2026-03-01T02:31:00Z",
            "kind": "setup",
            "agents": [{"id": "ann", "role": "user"}],
            "policy": {"version": "p-7", "forbidden": [{"acts": ["revise"]}]},
        }
    ]
    for number in range(24):
        atom = {
            "entity": "pool",
            "attribute": "timeout",
            "facet": ("linux", None, "mac")[number % 3],
            "value": values[number % 4],
            "relation": ("supersedes", None, "contradicts")[number // 3 % 3],
        }
        said.append(
            {
                "conversation_id": "c",
                "utterance_id": f"u{number}",
                "speaker": ("ann", "bob")[number % 2],
                "at": "2026-03-01T02:31:00Z",
                "operations": [
                    {"op": "observe", "record": f"o{number}", "claim": "x", "atoms": [atom]}
                ],
            }
        )
    run(tmp_path, list(said))
    indexed(path := tmp_path / "store.duckdb")
    expected = fresh_folds(said)
    assert b'"facet":"linux"' in expected[("default", "c"), 24]
    assert b'"policy":"p-7"' in expected[("default", "c"), 24]
    assert answers(path, list(expected)) == expected
