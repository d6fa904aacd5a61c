"""A model by script: what an utterance says stands in its text as JSON; times and faults by chance.

The reading depends on the utterance alone, so every process reads the same. What depends on chance
is how long it takes and whether the endpoint fails first.
"""

from __future__ import annotations

import asyncio
import random
import sys
from typing import final

import orjson

from processor.app.interpret import NO_OPERATIONS
from processor.engine.conversation import Conversation
from processor.interpreter.port import (
    EndpointUnavailable,
    Interpreted,
    Reading,
    Refused,
    Unreadable,
)
from schemas.log import Interpretation
from schemas.utterance import Utterance, UtteranceKind
from schemas.wire import WireError, decode_utterance
from tests.oracles.naive_map import Json

ASKED = "the script is asked"
PROVENANCE = Interpretation(interpreter="scripted", model="script", attempts=1)


def as_text(utterance: Json) -> Json:
    """The same utterance as text: its operations or claims are for the model to read."""
    field = "operations" if utterance["kind"] == "statement" else "claims"
    said = utterance.get(field)
    if utterance["kind"] == "setup" or said is None:
        return utterance
    text = orjson.dumps(said).decode()
    return {**{key: utterance[key] for key in utterance if key != field}, "text": text}


def read(utterance: Utterance) -> Interpreted:
    """What the script makes of an utterance."""
    field = "operations" if utterance.kind is UtteranceKind.STATEMENT else "claims"
    try:
        said = orjson.loads(utterance.text)
        whole = {
            "conversation_id": "c",
            "utterance_id": "u",
            "speaker": "s",
            "text": "",
            "at": "2026-01-01T00:00:00Z",
            "kind": utterance.kind.value,
            field: said,
        }
        understood = decode_utterance(orjson.dumps(whole))
    except (orjson.JSONDecodeError, WireError):
        return Unreadable(PROVENANCE, NO_OPERATIONS)
    return Reading(PROVENANCE, understood.operations or (), understood.claims)


@final
class ScriptedInterpreter:
    """Takes up to `seconds_max`, and fails in `failures` of the calls."""

    def __init__(self, seconds_max: float = 0.2, failures: float = 0.05) -> None:
        self._seconds_max = seconds_max
        self._failures = failures
        self._asked = False

    async def interpret(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """Read an utterance, or fail as an endpoint fails."""
        if not self._asked:
            self._asked = True
            print(ASKED, file=sys.stderr, flush=True)
        await asyncio.sleep(random.uniform(0, self._seconds_max))
        if random.random() < self._failures:
            raise EndpointUnavailable("429", retry_after_s=0.05)
        return read(utterance)
