"""The same input gives the same bytes, however it is cut, mixed, tried out or hashed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
from hypothesis import given
from hypothesis import strategies as st

from processor.engine.conversation import Conversation
from processor.engine.digest import state_digest
from processor.engine.snapshot import dump, load
from processor.engine.turn import dry_run
from processor.evidence.fold import Folded, fold
from schemas.derived import DerivedEvent, TurnEvent
from schemas.log import OperationsAppended
from schemas.wire import decode_utterance
from tests.properties import print_digests
from tests.properties.engine_driver import EngineDriver, as_map, folded, next_event
from tests.strategies_streams import (
    CONVERSATIONS,
    ONE_CONVERSATION,
    Stream,
    seeded_stream,
    streams,
)

ROOT = Path(__file__).resolve().parents[2]
HASH_SEEDS = ("0", "1", "2", "1000", "4294967295")
THE_ONE = ONE_CONVERSATION[0]

one_conversation = streams(conversations=ONE_CONVERSATION)


@given(one_conversation)
def test_what_applies_nothing_leaves_the_state_digest(stream: Stream) -> None:
    """Refused operations, failed statements and candidates change the log's digest alone."""
    driver = EngineDriver()
    driver.conversations[THE_ONE] = conversation = Conversation.empty(*THE_ONE)
    for utterance in stream:
        before = (conversation.digest, conversation.state_digest())
        events = driver.fold(utterance)
        after = (conversation.digest, conversation.state_digest())
        if not events:
            continue
        applied = events[0].applied if isinstance(events[0], TurnEvent) else ()
        assert applied or after[1] == before[1]
        assert after[0] != before[0]


@given(one_conversation)
def test_the_incremental_state_digest_equals_the_full_one(stream: Stream) -> None:
    """Asked after every utterance or once at the end, it is the digest of the state as a whole."""
    asked = EngineDriver()
    for utterance in stream:
        asked.fold(utterance)
        conversation = asked.conversations[THE_ONE]
        assert conversation.state_digest() == state_digest(conversation.state)
    unasked = EngineDriver()
    for utterance in stream:
        event = next_event(unasked.conversation(THE_ONE), utterance)
        if event is not None:
            fold(unasked.conversations[THE_ONE], event)
    assert unasked.digests() == asked.digests()


@given(one_conversation)
def test_a_dry_run_leaves_everything_untouched(stream: Stream) -> None:
    """A dry run says what the turn will do, and nothing tells afterwards that it took place."""
    conversation = Conversation.empty(*THE_ONE)
    for utterance in stream:
        event = next_event(conversation, utterance)
        if event is None:
            continue
        if isinstance(event, OperationsAppended):
            before = fingerprint(conversation)
            tried = dry_run(
                conversation.state, event.turn, event.speaker, event.audience, event.operations
            )
            assert fingerprint(conversation) == before
        done = fold(conversation, event)
        assert isinstance(done, Folded)
        if isinstance(event, OperationsAppended):
            assert done.advanced.outcome == tried


def fingerprint(conversation: Conversation) -> tuple[object, ...]:
    """Everything the conversation holds, indexes and flags included, with their orders."""
    state = conversation.state
    records = [
        (
            record.id,
            record.grounded,
            record.core_grounded,
            record.committed,
            [one.id for one in record.supports],
            [one.id for one in record.dependents],
            [one.id for one in record.corroborated],
        )
        for record in state.records.values()
    ]
    introduced = {agent: [r.id for r in own] for agent, own in state.introduced.items()}
    return (
        dump(conversation),
        records,
        list(introduced.items()),
        list(state.attacks),
        state.link_count,
        state_digest(state),
        conversation.state_digest(),
    )


@given(streams(), st.sets(st.integers(0, 11)))
def test_any_split_into_runs_gives_the_same_events_and_digests(
    stream: Stream, cuts: set[int]
) -> None:
    """Writing the state and reading it again between any two utterances changes nothing."""
    whole, split = EngineDriver(), EngineDriver()
    for position, utterance in enumerate(stream):
        if position in cuts:
            split.restart()
        assert split.fold(utterance) == whole.fold(utterance)
    assert split.digests() == whole.digests()
    for key, conversation in whole.conversations.items():
        assert as_map(split.conversations[key].state) == as_map(conversation.state)


@given(one_conversation)
def test_a_snapshot_read_back_is_the_same_snapshot(stream: Stream) -> None:
    """Reading and writing a snapshot gives its bytes again, and flags equal to the kept ones."""
    conversation = folded(stream).conversations[THE_ONE]
    again = load(dump(conversation))
    assert dump(again) == dump(conversation)
    assert again.state_digest() == state_digest(again.state) == conversation.state_digest()
    assert as_map(again.state) == as_map(conversation.state)
    for name, record in conversation.state.records.items():
        kept = again.state.records[name]
        assert (kept.grounded, kept.core_grounded) == (record.grounded, record.core_grounded)
    assert again.state.link_count == conversation.state.link_count


@given(streams())
def test_interleaved_conversations_do_not_influence_one_another(stream: Stream) -> None:
    """Each conversation says the same when it is alone, to the byte."""
    together: dict[tuple[str, str], list[DerivedEvent]] = {key: [] for key in CONVERSATIONS}
    mixed = EngineDriver()
    for utterance in stream:
        together[utterance["tenant_id"], utterance["conversation_id"]] += mixed.fold(utterance)
    for key in CONVERSATIONS:
        alone = EngineDriver()
        own = [u for u in stream if (u["tenant_id"], u["conversation_id"]) == key]
        assert [event for u in own for event in alone.fold(u)] == together[key]
        assert alone.digests().get(key) == mixed.digests().get(key)


@given(streams())
def test_a_repeated_stream_says_nothing(stream: Stream) -> None:
    """Every utterance that was appended once is a no-op when it comes again."""
    driver = folded(stream)
    before = driver.digests()
    assert [driver.fold(utterance) for utterance in stream] == [()] * len(stream)
    assert driver.digests() == before


def test_hash_seeds_do_not_show() -> None:
    """Five processes with different hash seeds print the digests that this one computes."""
    stream = seeded_stream(0, 150)
    expected = print_digests.lines(stream)
    assert len(expected) == len(CONVERSATIONS)
    for hash_seed in HASH_SEEDS:
        run = subprocess.run(
            [sys.executable, "-m", "tests.properties.print_digests"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            input=b"\n".join(map(orjson.dumps, stream)),
            capture_output=True,
            check=True,
        )
        assert run.stdout.decode().splitlines() == expected, f"PYTHONHASHSEED={hash_seed}"


def test_the_order_of_keys_in_a_line_does_not_show() -> None:
    """A line whose keys come in another order is the same utterance, with the same digests."""
    operation = {"op": "observe", "record": "a", "claim": "seen"}
    utterance = {
        "conversation_id": "c1",
        "utterance_id": "u1",
        "speaker": "ann",
        "at": "2026-03-01T02:00:00Z",
        "operations": [operation],
    }
    reversed_keys = {
        **dict(reversed(utterance.items())),
        "operations": [dict(reversed(operation.items()))],
    }
    assert orjson.dumps(utterance) != orjson.dumps(reversed_keys)
    assert decode_utterance(orjson.dumps(utterance)) == decode_utterance(
        orjson.dumps(reversed_keys)
    )
    assert folded([utterance]).digests() == folded([reversed_keys]).digests()
