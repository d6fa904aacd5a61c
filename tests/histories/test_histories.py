"""Old logs fold to the digests they were recorded with, whatever has changed since."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from processor.engine.conversation import Conversation
from processor.engine.rules_version import KNOWN_RULES
from processor.evidence.fold import Refused, advance
from processor.scenarios import NAMES
from schemas.log import InterpretationFailed
from schemas.wire import decode_log_event
from tests.histories.record import HERE

HISTORIES = sorted(HERE.glob("*.jsonl"))


def test_there_are_histories() -> None:
    """One for each scenario under each version of the rules, and more for what no scenario has."""
    there = {path.stem for path in HISTORIES}
    scenarios = {f"{name}-rules{rules}" for name in NAMES for rules in KNOWN_RULES}
    assert there > scenarios
    assert {f"evidence-rules{rules}" for rules in KNOWN_RULES} < there
    assert "authority-rules3" in there


def test_there_are_histories_that_a_model_has_read() -> None:
    """Their answers are part of the log, and some turns could not be read."""
    paths = [path for path in HISTORIES if path.stem.endswith("-model")]
    assert {path.stem.removesuffix("-rules3-model") for path in paths} == {
        "incident-with-candidates",
        "values",
    }
    for path in paths:
        events = [decode_log_event(line) for line in path.read_bytes().splitlines()[:-1]]
        calls = [call for event in events for call in event.provenance.calls]
        assert len(calls) >= 4
        assert all(call.answer or call.refusal for call in calls)
        assert any(isinstance(event, InterpretationFailed) for event in events)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_a_recorded_history_folds_to_its_digests(path: Path) -> None:
    """The log is read as it was stored, and folds to the recorded digest and state digest."""
    *events, folded_to = path.read_bytes().splitlines()
    conversation: Conversation | None = None
    for stored in events:
        event = decode_log_event(stored)
        if conversation is None:
            conversation = Conversation.empty(event.tenant_id, event.conversation_id)
        assert not isinstance(advance(conversation, event), Refused)
    assert conversation is not None
    assert orjson.loads(folded_to) == {
        "digest": conversation.digest,
        "state_digest": conversation.state_digest(),
    }
