"""Has utterances read: waits for the endpoint, and asks again what the state refuses.

The pipeline and the one-process run read with the same reader. An endpoint that cannot be reached
is waited for; it never fails a turn before patience ends.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from processor.app.interpret import interpret, needs_reading
from processor.app.read_claims import read_claims
from processor.app.tenants import PLAIN, Tenants
from processor.engine.authority import authority
from processor.engine.conversation import Conversation
from processor.engine.rules_version import CURRENT_RULES
from processor.engine.turn import dry_run
from processor.interpreter.loop import add_costs, read_until_it_stands, what_stands
from processor.interpreter.port import (
    EndpointUnavailable,
    Interpreted,
    Interpreter,
    Reading,
    Refused,
    Unreadable,
)
from schemas.log import Interpretation, OperationsAppended, Rejection
from schemas.utterance import Utterance

PAUSE_FIRST_S = 0.2
PAUSE_MAX_S = 15.0
OUTAGE_PATIENCE_S = 3_600.0


@final
@dataclass
class UtteranceReader:
    """Reads with an interpreter; None reads nothing.

    While the endpoint is down calls wait, for at most `outage_patience_s`; `on_endpoint` is told
    whether it answers.
    """

    interpreter: Interpreter | None = None
    rules_version: int = CURRENT_RULES
    tenants: Tenants = PLAIN
    outage_patience_s: float = OUTAGE_PATIENCE_S
    on_endpoint: Callable[[bool], None] = lambda _: None

    async def read(
        self, conversation: Conversation, utterance: Utterance, fills: int | None = None
    ) -> Interpreted | None:
        """What the interpreter says an utterance says; None if it need not or cannot be asked.

        With `fills`, the turn of this very utterance that is missing, it is read anew.
        """
        if not self._must_ask(conversation, utterance, fills):
            return None
        if utterance.claims is None:
            return await self._reading(conversation, utterance, fills)
        return await read_claims(utterance, lambda each: self._reading(conversation, each, None))

    def standing(
        self,
        conversation: Conversation,
        utterance: Utterance,
        reading: Interpreted | None,
        fills: int | None = None,
    ) -> Interpreted | None:
        """The reading without what the present state refuses, which is noted in it."""
        if not isinstance(reading, Reading) or not needs_reading(utterance):
            return reading
        return what_stands(reading, self._refusals(conversation, utterance, reading, fills))

    def _must_ask(
        self, conversation: Conversation, utterance: Utterance, fills: int | None
    ) -> bool:
        return (
            self.interpreter is not None
            and needs_reading(utterance)
            and (utterance.utterance_id not in conversation.utterances or fills is not None)
        )

    async def _reading(
        self, conversation: Conversation, utterance: Utterance, fills: int | None
    ) -> Interpreted:
        return await read_until_it_stands(
            lambda refused: self._answer(conversation, utterance, refused),
            lambda reading: self._refusals(conversation, utterance, reading, fills),
        )

    def _refusals(
        self,
        conversation: Conversation,
        utterance: Utterance,
        reading: Reading,
        fills: int | None,
    ) -> tuple[Rejection, ...]:
        """What the present state would refuse of the reading."""
        event = interpret(
            conversation, utterance, self.rules_version, reading, None, fills, self.tenants
        )
        if not isinstance(event, OperationsAppended):
            return ()
        return dry_run(
            conversation.state,
            event.turn,
            event.speaker,
            event.audience,
            event.operations,
            authority(conversation.state, event.rules_version, event.role, event.policy),
        ).rejections

    async def _answer(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """Wait for the endpoint as long as patience lasts, with growing pauses and jitter.

        Patience counts from the first failure, with the time that calls take to fail.
        """
        assert self.interpreter is not None
        clock = asyncio.get_running_loop().time
        ends_at, pause_s = math.inf, PAUSE_FIRST_S
        spent: list[Interpretation] = []
        while True:
            try:
                answer = await self.interpreter.interpret(conversation, utterance, refused)
            except EndpointUnavailable as unavailable:
                self.on_endpoint(False)
                spent += () if unavailable.spent is None else (unavailable.spent,)
                ends_at = min(ends_at, clock() + self.outage_patience_s)
                left_s = ends_at - clock()
                if left_s <= 0:
                    last = spent[-1] if spent else Interpretation(interpreter="none")
                    return Unreadable(add_costs(spent, last), str(unavailable))
                wait_s = (unavailable.retry_after_s or 0.0) + pause_s * random.uniform(0.5, 1.5)
                await asyncio.sleep(min(wait_s, left_s))
                pause_s = min(2 * pause_s, PAUSE_MAX_S)
            else:
                self.on_endpoint(True)
                costs = [*spent, answer.provenance]
                return answer._replace(provenance=add_costs(costs, answer.provenance))
