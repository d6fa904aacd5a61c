"""The paper's statements about the map, on states that the engine reached by random streams."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given

from processor.engine.conversation import Conversation
from processor.engine.retraction import affected_by_ids, affected_closure, affected_one_step
from processor.engine.verify import (
    closure,
    grade,
    is_grounded,
    walk_is_core_grounded,
    walk_is_grounded,
)
from tests.oracles import naive_queries as ask
from tests.oracles.dung import (
    is_admissible,
    is_conflict_free,
    preferred_extensions,
    restricted,
)
from tests.oracles.naive_map import Map
from tests.properties.engine_driver import EngineDriver, as_map
from tests.strategies_streams import ONE_CONVERSATION, Stream, streams

ARGUMENTS_MAX = 9
"""Frameworks up to this size have their preferred extensions enumerated."""

one_conversation = streams(conversations=ONE_CONVERSATION)


def states(stream: Stream) -> Iterator[Conversation]:
    """The conversation after each utterance."""
    driver = EngineDriver()
    for utterance in stream:
        driver.fold(utterance)
        yield driver.conversations[ONE_CONVERSATION[0]]


def last_map(stream: Stream) -> tuple[Conversation, Map]:
    """The conversation after the stream, and its map for the naive queries."""
    *_, conversation = states(stream)
    return conversation, as_map(conversation.state)


def one_by_one(stream: Stream) -> Stream:
    """The same operations, each in a statement of its own."""
    single = []
    for number, utterance in enumerate(stream):
        operations = utterance.get("operations")
        if operations is None:
            single.append(utterance)
            continue
        single += [
            {**utterance, "utterance_id": f"s{number}.{index}", "operations": [operation]}
            for index, operation in enumerate(operations)
        ]
    return single


@given(one_conversation)
def test_lemma_2_2_after_every_operation(stream: Stream) -> None:
    """No attack has a target in good standing, so the records in good standing do not conflict."""
    for conversation in states(one_by_one(stream)):
        m = as_map(conversation.state)
        standing = ask.good_standing(m)
        assert not {target for _, target in m.attacks} & standing
        assert is_conflict_free(m.attacks, standing)


@given(one_conversation)
def test_standing_only_falls(stream: Stream) -> None:
    """No operation removes a record, or moves one back into good standing or out of abandoned."""
    allowed = {
        "active": {"active", "weakened", "abandoned", "resolved"},
        "resolved": {"resolved", "abandoned"},
        "weakened": {"weakened", "abandoned"},
        "abandoned": {"abandoned"},
    }
    before: Map = Map()
    for conversation in states(one_by_one(stream)):
        after = as_map(conversation.state)
        for name, record in before.records.items():
            assert after.records[name].standing in allowed[record.standing]
        before = after


@given(one_conversation)
def test_flags_equal_the_walk_after_every_utterance(stream: Stream) -> None:
    """Both constant-time answers are what walking the closure finds, by either walk."""
    for conversation in states(stream):
        m = as_map(conversation.state)
        for record in conversation.state.records.values():
            strict = ask.grounded(m, record.id)
            core = ask.grounded_without_corroboration(m, record.id)
            assert (is_grounded(record), record.core_grounded) == (strict, core)
            assert (walk_is_grounded(record), walk_is_core_grounded(record)) == (strict, core)


@given(one_conversation)
def test_grade_equals_its_definition(stream: Stream) -> None:
    """The grade says which of the two walks still stands."""
    conversation, m = last_map(stream)
    for record in conversation.state.records.values():
        assert grade(record) == ask.grade(m, [record.id])
        assert set(closure([record])) == ask.closure(m, [record.id])


@given(one_conversation)
def test_affected_closure_equals_the_rounds_of_definition_2_3(stream: Stream) -> None:
    """The reverse walk gives the union of the rounds X_k, which settle within |Args| rounds."""
    conversation, m = last_map(stream)
    for record in conversation.state.records.values():
        rounds = ask.affected_rounds(m, [record.id])
        assert len(rounds) <= len(m.records)
        assert {r.id for r in affected_one_step(record)} == rounds[0]
        assert {r.id for r in affected_closure(record)} == rounds[-1]


@given(one_conversation)
def test_affected_closure_equals_the_transitive_matrix(stream: Stream) -> None:
    """Corollary 2.4: exactly the records with a non-empty path, itself only on a cycle."""
    conversation, m = last_map(stream)
    paths = transitive_links(m)
    for record in conversation.state.records.values():
        reaching = {one for one, other in paths if other == record.id}
        assert {r.id for r in affected_closure(record)} == reaching


@given(one_conversation)
def test_affected_by_several_is_the_union(stream: Stream) -> None:
    """Withdrawing a set touches what withdrawing its members one by one would touch."""
    conversation, m = last_map(stream)
    withdrawn = list(m.records)[::2]
    report = affected_by_ids(conversation.state, withdrawn)
    assert set(report.direct) == ask.affected(m, withdrawn)
    assert set(report.transitive) == ask.affected_closure(m, withdrawn)
    single = (ask.affected_closure(m, [name]) for name in withdrawn)
    assert set(report.transitive) == set().union(*single)
    assert set(report.in_good_standing) == set(report.transitive) & ask.good_standing(m)


@given(one_conversation)
def test_proposition_2_3_one_step(stream: Stream) -> None:
    """Without a withdrawn record and its direct dependents the rest of S stays admissible."""
    _, m = last_map(stream)
    for withdrawn in m.records.keys() - ask.good_standing(m):
        removed = {withdrawn} | ask.affected(m, [withdrawn])
        kept = {n for n in ask.good_standing(m) if withdrawn not in ask.supports(m, n)}
        assert_preserved(m, removed, kept)


@given(one_conversation)
def test_corollary_2_4_closure(stream: Stream) -> None:
    """The same holds for the closure, and exactly the records without a path are preserved."""
    _, m = last_map(stream)
    paths = transitive_links(m)
    for withdrawn in m.records.keys() - ask.good_standing(m):
        removed = {withdrawn} | ask.affected_closure(m, [withdrawn])
        kept = {n for n in ask.good_standing(m) if (n, withdrawn) not in paths}
        assert_preserved(m, removed, kept)


def assert_preserved(m: Map, removed: set[str], kept: set[str]) -> None:
    """S without the removed is the kept; it is admissible in the rest and in all its extensions."""
    remaining = m.records.keys() - removed
    attacks = restricted(m.attacks, remaining)
    assert ask.good_standing(m) - removed == kept
    assert is_conflict_free(attacks, kept)
    assert is_admissible(attacks, kept)
    if len(remaining) <= ARGUMENTS_MAX:
        extensions = preferred_extensions(attacks, remaining)
        containing = [extension for extension in extensions if kept <= extension]
        assert containing
        assert all(not extension & removed for extension in containing)


def transitive_links(m: Map) -> set[tuple[str, str]]:
    """Warshall's algorithm: every (record, record it reaches over one link or more)."""
    reaches = {name: ask.supports(m, name) for name in m.records}
    for middle in m.records:
        for name in m.records:
            if middle in reaches[name]:
                reaches[name] |= reaches[middle]
    return {(name, reached) for name in m.records for reached in reaches[name]}
