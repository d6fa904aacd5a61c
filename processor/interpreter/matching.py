"""Around an interpreter that asks a model: what comparing words tells, which no model must decide.

A draft that repeats records word for word is not sent to a model at all. What a model read is
mended: claims that a record makes rest on it, and what an assistant restates rests on that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from processor.engine.conversation import Conversation
from processor.interpreter.candidates import match_claims, match_draft
from processor.interpreter.port import Interpreted, Interpreter, Reading, Refused
from processor.interpreter.restatements import link_restatements
from schemas.log import Interpretation
from schemas.utterance import Utterance, UtteranceKind

EXACT_MATCH = Interpretation(interpreter="exact_match")


@final
@dataclass(frozen=True)
class MatchingInterpreter:
    """Compares words before and after `asked` is asked."""

    asked: Interpreter

    async def interpret(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """Read an utterance; see `Interpreter`. Raises EndpointUnavailable."""
        state = conversation.state
        is_draft = utterance.kind is UtteranceKind.CANDIDATE
        matched = match_draft(state, utterance.text) if is_draft else None
        if matched is not None:
            return Reading(EXACT_MATCH, claims=matched)
        read = await self.asked.interpret(conversation, utterance, refused)
        if not isinstance(read, Reading):
            return read
        if is_draft:
            return read._replace(claims=read.claims and match_claims(state, read.claims))
        linked = link_restatements(state, utterance.role, read.operations)
        return read._replace(operations=linked)
