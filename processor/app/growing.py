"""Folds the growing conversation, and hands it out at the sizes that were asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from processor.app.interpret import interpret
from processor.engine.conversation import Conversation
from processor.engine.errors import BrokenInvariantError
from processor.evidence.fold import Refused, advance
from processor.scenarios.growing import utterances
from schemas.wire import decode_utterance


def growing(sizes: Sequence[int]) -> Iterator[Conversation]:
    """One conversation, as it is after each of these numbers of turns, in ascending order."""
    wanted = frozenset(sizes)
    conversation = Conversation.empty("default", "bench")
    for said in utterances(max(wanted, default=0)):
        event = interpret(conversation, decode_utterance(orjson.dumps(said)))
        if isinstance(event, tuple) or isinstance(advance(conversation, event), Refused):
            raise BrokenInvariantError("an utterance of the growing conversation does not fit")
        if conversation.turn in wanted:
            yield conversation
