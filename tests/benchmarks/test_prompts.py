"""What it costs to write a prompt, and to compare claims, in a conversation of 10,000 turns."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from processor.engine.conversation import Conversation
from processor.interpreter.candidates import match_draft
from processor.interpreter.prompts import Condition
from schemas.utterance import Utterance
from tests.interpreter.long_conversation import long_conversation
from tests.interpreter.prompted import standard

pytestmark = pytest.mark.bench
Before = tuple[Conversation, Utterance]


@pytest.fixture(scope="module")
def before() -> Before:
    """The conversation before its last turn, and that."""
    *_, last = long_conversation(10_000)
    return last


def test_prompt(benchmark: BenchmarkFixture, before: Before) -> None:
    """The state-augmented prompt of one statement, within 8,000 tokens."""
    prompts = standard(Condition.STATE_AUGMENTED)
    assert benchmark(prompts.statement, *before, None).messages


def test_comparison(benchmark: BenchmarkFixture, before: Before) -> None:
    """The comparison of a draft's sentences with all claims."""
    conversation, _ = before
    assert benchmark(match_draft, conversation.state, "It is so. Or not.") is None
