"""The engine says and holds what the naive engine does, on random streams of operations."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from hypothesis import given

from processor.engine.conversation import Conversation
from processor.engine.retraction import affected_by_ids
from processor.engine.state import State
from processor.engine.verify import verify_record
from tests.oracles import naive_queries as ask
from tests.oracles.naive_engine import NaiveConversation, NaiveEngine
from tests.oracles.naive_map import EVERYONE, Json, Map
from tests.properties.engine_driver import EngineDriver, as_map
from tests.properties.shrinking import smaller
from tests.strategies_streams import (
    AGENTS,
    PROPOSITIONS,
    Stream,
    seeded_stream,
    streams,
)

LATECOMER = "zoe"
"""An agent nobody ever mentioned: aware of what everyone is aware of, and of nothing else."""


@given(streams())
def test_short_streams(stream: Stream) -> None:
    """Derived events, state and queries agree after every utterance of a short stream."""
    assert_no_difference(stream)


@pytest.mark.parametrize("seed", range(30))
def test_long_streams(seed: int) -> None:
    """Derived events and state agree on long interleaved conversations, and queries at the end."""
    stream = seeded_stream(seed, 60)
    if difference(stream, ask_always=False) is not None:
        stream = smaller(stream, lambda shorter: difference(shorter) is not None)
    assert_no_difference(stream)


def assert_no_difference(stream: Stream) -> None:
    """Fail with the stream as JSON Lines, ready to be run, and what differs."""
    found = difference(stream)
    lines = "\n".join(orjson.dumps(utterance).decode() for utterance in stream)
    assert found is None, f"{found}\n{lines}"


def difference(stream: Stream, *, ask_always: bool = True) -> str | None:
    """The first thing on which the two engines disagree."""
    naive, driver = NaiveEngine(), EngineDriver()
    for utterance in stream:
        expected, said = naive.say(utterance), driver.say(utterance)
        if expected != said:
            return f"events of {utterance['utterance_id']}\n{_only_in(expected, said)}"
        key = (utterance["tenant_id"], utterance["conversation_id"])
        pair = naive.conversations[key], driver.conversations[key]
        found = state_difference(*pair)
        if found is None and (ask_always or utterance is stream[-1]):
            found = query_difference(pair[0].map, pair[1].state)
        if found is not None:
            return f"state after {utterance['utterance_id']}\n{found}"
    return None


def _only_in(expected: list[Json], said: list[Json]) -> str:
    missing = [event for event in expected if event not in said]
    surplus = [event for event in said if event not in expected]
    return f"only the oracle: {missing}\nonly the engine: {surplus}"


def state_difference(naive: NaiveConversation, real: Conversation) -> str | None:
    """The first part of the state on which the two disagree."""
    counters = (naive.turn, naive.sequence, naive.failed_turns)
    if counters != (real.turn, real.sequence, list(real.missing)):
        return f"turn, sequence, missing: {counters}"
    expected, held = naive.map, as_map(real.state)
    for name in expected.records.keys() | held.records.keys():
        if expected.records.get(name) != held.records.get(name):
            return f"{name}: {expected.records.get(name)} != {held.records.get(name)}"
    known = {(record, q) for record, q in expected.answers if q in expected.questions}
    comparable = replace(expected, answers=frozenset(known), awareness=frozenset())
    if comparable != held:
        return f"{comparable} != {held}"
    return awareness_difference(expected, real.state)


def query_difference(m: Map, state: State) -> str | None:
    """The first query that the two answer differently."""
    problems = sorted(problem.id for problem in state.open_problems())
    if problems != ask.open_problems(m):
        return f"open problems: {ask.open_problems(m)} != {problems}"
    for name in m.records:
        support = sorted(ask.closure(m, [name])) if ask.grounded(m, name) else []
        verdict = verify_record(state, name)
        if (verdict.grade, list(verdict.support)) != (ask.grade(m, [name]), support):
            return f"verify {name}: {verdict}"
        report = affected_by_ids(state, [name])
        transitive = ask.affected_closure(m, [name])
        expected = (ask.affected(m, [name]), transitive, transitive & ask.good_standing(m))
        if tuple(map(list, report)) != tuple(map(sorted, expected)):
            return f"affected {name}: {report}"
    return None


def awareness_difference(m: Map, state: State) -> str | None:
    """The first agent and proposition about whose awareness the two disagree."""
    for agent in (*AGENTS, LATECOMER):
        for proposition in (*PROPOSITIONS, *m.records):
            whom = EVERYONE if agent == LATECOMER else agent
            expected = bool({(whom, proposition), (EVERYONE, proposition)} & m.awareness)
            if state.awareness.is_aware(agent, proposition) != expected:
                return f"{agent} aware of {proposition}: expected {expected}"
    return None
