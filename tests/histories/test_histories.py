"""Old logs fold to the digests they were recorded with, whatever has changed since."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused, advance
from schemas.wire import decode_log_event
from tests.histories.record import HERE

HISTORIES = sorted(HERE.glob("*.jsonl"))


def test_there_are_histories() -> None:
    """One for each scenario at least, and more for what no scenario has."""
    assert len(HISTORIES) >= 5


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
