"""A conversation that was captured can be encoded later, whatever has happened to it by then."""

from __future__ import annotations

import orjson
import pytest

from processor.app.interpret import AlreadyInLog, Unusable, interpret
from processor.engine.conversation import Conversation
from processor.engine.snapshot import Capture, capture, dump, encode
from processor.engine.turn import dry_run
from processor.evidence.fold import advance
from schemas.log import OperationsAppended
from schemas.wire import canonical_bytes, canonical_list, decode_utterance
from tests.strategies_streams import ONE_CONVERSATION, seeded_stream


@pytest.mark.parametrize("seed", range(5))
def test_what_is_captured_does_not_change(seed: int) -> None:
    """Neither turns nor dry runs that come after it can be seen in its bytes."""
    conversation = Conversation.empty(*ONE_CONVERSATION[0])
    taken: list[tuple[Capture, bytes]] = []
    for said in seeded_stream(seed, 120, ONE_CONVERSATION):
        event = interpret(conversation, decode_utterance(orjson.dumps(said)))
        if isinstance(event, (AlreadyInLog, Unusable)):
            continue
        if isinstance(event, OperationsAppended):
            given = event.turn, event.speaker, event.audience, event.operations
            dry_run(conversation.state, *given)
        advance(conversation, event)
        taken.append((capture(conversation), dump(conversation)))
    assert len(taken) > 50
    assert [encode(captured) for captured, _ in taken] == [dumped for _, dumped in taken]


@pytest.mark.parametrize("length", [0, 1, 99, 100, 101, 250])
def test_a_list_in_pieces_has_the_same_bytes(length: int) -> None:
    """However many pieces it was written in."""
    values = [[number, {"b": None, "a": str(number)}] for number in range(length)]
    assert canonical_bytes({"x": canonical_list(values)}) == canonical_bytes({"x": values})
