"""The core's operations one by one; `python -m tests.benchmarks.core` puts them into proportion."""

from __future__ import annotations

import orjson
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from processor.engine.conversation import Conversation
from processor.engine.retraction import affected_closure
from processor.engine.snapshot import dump, load
from processor.engine.verify import grade, verify
from processor.evidence.fold import advance, fold
from schemas.wire import canonical_bytes, decode_log_event
from tests.benchmarks.conversations import log_of

pytestmark = pytest.mark.bench
TURNS = 2_000
EVENTS, CONVERSATION = log_of(TURNS)
STORED = [canonical_bytes(event) for event in EVENTS]
BUSIEST = max(CONVERSATION.state.records.values(), key=lambda record: len(record.dependents))


def test_closure(benchmark: BenchmarkFixture) -> None:
    """Affected* of the record that most others rest on."""
    assert benchmark(affected_closure, BUSIEST)


def test_verdict(benchmark: BenchmarkFixture) -> None:
    """The graded answer alone, which does not depend on the conversation's length."""
    assert benchmark(grade, BUSIEST)


def test_check(benchmark: BenchmarkFixture) -> None:
    """A check of a claim with its support or its failures."""
    assert benchmark(verify, CONVERSATION.state, (BUSIEST.id,))


def test_loads(benchmark: BenchmarkFixture) -> None:
    """Merely decoding the stored log as JSON: what folding is compared with."""
    benchmark(lambda: [orjson.loads(each) for each in STORED])


def test_decode(benchmark: BenchmarkFixture) -> None:
    """Decoding and validating the stored log."""
    benchmark(lambda: [decode_log_event(each) for each in STORED])


def test_advance(benchmark: BenchmarkFixture) -> None:
    """Folding the log, as recovery and replay do."""

    def advance_all() -> str:
        conversation = Conversation.empty("default", "bench")
        for event in EVENTS:
            advance(conversation, event)
        return conversation.digest

    assert benchmark(advance_all) == CONVERSATION.digest


def test_fold(benchmark: BenchmarkFixture) -> None:
    """Folding the log with everything that is emitted."""

    def fold_all() -> str:
        conversation = Conversation.empty("default", "bench")
        for event in EVENTS:
            fold(conversation, event)
        return conversation.digest

    assert benchmark(fold_all) == CONVERSATION.digest


def test_snapshot(benchmark: BenchmarkFixture) -> None:
    """A conversation to bytes and back."""
    assert benchmark(lambda: load(dump(CONVERSATION))).digest == CONVERSATION.digest
