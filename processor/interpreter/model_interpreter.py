"""The interpreter that asks a model: prompt, answer, reply, and what to do where one is missing.

A reply that is cut off is asked for once more with twice the room; one that cannot be read is asked
for once more with what is wrong. After that, and after a refusal, the utterance is unreadable.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, final

from processor.engine.conversation import Conversation
from processor.interpreter.extract import BadReply
from processor.interpreter.limits import TenantBudgets
from processor.interpreter.port import (
    EndpointUnavailable,
    Interpreted,
    Reading,
    Refused,
    Unreadable,
)
from processor.interpreter.prompt import Message, MessageRole, Prompt, Prompts
from processor.interpreter.reply import read_candidate, read_statement
from processor.interpreter.reply_schema import (
    CANDIDATE,
    STATEMENT,
    candidate_schema,
    statement_schema,
)
from processor.interpreter.request import Answer, Model, ModelRequest, RequestRefused, Shape
from schemas.contract import REASON_CHARS_MAX
from schemas.log import ANSWER_CHARS_MAX, Interpretation, ModelCall
from schemas.quote import quoted_json
from schemas.utterance import Utterance, UtteranceKind

CALLS_MAX: Final = 4
"""One, one with more room, one with a correction, and one with both."""
QUOTED_CHARS_MAX: Final = 4_096
_CUT: Final = "length"
_FILTERED: Final = "content_filter"
_CORRECTION: Final = "That answer cannot be read: {}. Answer again, with one JSON object as asked."


@final
@dataclass
class ModelInterpreter:
    """Reads utterances with a model, in the words of `prompts`."""

    model: Model
    prompts: Prompts
    budgets: TenantBudgets = field(default_factory=TenantBudgets)
    utterance_s_max: float = 180.0

    async def interpret(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """Read an utterance. Raises EndpointUnavailable with what was spent before it failed."""
        is_candidate = utterance.kind is UtteranceKind.CANDIDATE
        prompt = (
            self.prompts.candidate(conversation, utterance)
            if is_candidate
            else self.prompts.statement(conversation, utterance, refused)
        )
        exchange = _Exchange(self.model, self.budgets, utterance, prompt)
        try:
            async with asyncio.timeout(self.utterance_s_max):
                return await exchange.run()
        except TimeoutError:
            unavailable = EndpointUnavailable(f"no answer within {self.utterance_s_max:g} s")
            unavailable.spent = exchange.spent()
            raise unavailable from None
        except EndpointUnavailable as failure:
            failure.spent = exchange.spent()
            raise


@final
@dataclass
class _Exchange:
    """The calls that are made for one reading."""

    model: Model
    budgets: TenantBudgets
    utterance: Utterance
    prompt: Prompt
    shape: Shape = field(init=False)
    calls: list[ModelCall] = field(default_factory=list)
    room: int = 1
    """How many times the usual length an answer may have."""

    async def run(self) -> Interpreted:
        """Ask until there is a reading, or nothing more to try."""
        self.shape = await self.model.shape()
        is_corrected = False
        for _ in range(CALLS_MAX):
            over = self.budgets.admit(self.utterance.tenant_id)
            if over is not None:
                return self._unreadable(over)
            try:
                answer = await self._ask()
            except RequestRefused as refused:
                return self._unreadable(f"the endpoint refuses the request: {refused}")
            if answer.refusal is not None or answer.finish_reason == _FILTERED:
                return self._unreadable(f"the model refuses: {answer.refusal or _FILTERED}")
            if answer.finish_reason == _CUT:
                if self.room > 1:
                    longest = self._tokens_max()
                    return self._unreadable(f"the answer is longer than {longest:,} tokens")
                self.room = 2
                continue
            try:
                return self._read(answer.text)
            except BadReply as bad:
                if is_corrected:
                    return self._unreadable(f"the answer cannot be read: {bad}")
                is_corrected = True
                self._correct(answer.text, str(bad))
        raise AssertionError("the last call decides")

    async def _ask(self) -> Answer:
        is_candidate = self.utterance.kind is UtteranceKind.CANDIDATE
        request = ModelRequest(
            shape=self.shape._replace(answer_tokens_max=self._tokens_max()),
            prompt=self.prompt,
            schema_name=CANDIDATE if is_candidate else STATEMENT,
            schema=candidate_schema() if is_candidate else statement_schema(),
        )
        try:
            answer = await self.model.ask(request)
        except (EndpointUnavailable, asyncio.CancelledError):
            self.budgets.give_back(self.utterance.tenant_id)
            raise
        self.budgets.spend(self.utterance.tenant_id, answer.tokens_in + answer.tokens_out)
        self.calls.append(_call(request, answer))
        return answer

    def _read(self, text: str) -> Reading:
        """What an answer says. Raises BadReply."""
        if self.utterance.kind is UtteranceKind.CANDIDATE:
            claims = read_candidate(text)
            return Reading(self._provenance(), claims=claims)
        reply = read_statement(text, self.utterance.speaker)
        provenance = self._provenance().model_copy(update={"rejections": reply.rejections})
        return Reading(provenance, reply.operations)

    def _tokens_max(self) -> int:
        return self.room * self.shape.answer_tokens_max

    def _correct(self, answer: str, problem: str) -> None:
        """Ask again behind the answer that cannot be read, which may repeat a hostile text."""
        lines = map(quoted_json, answer[:QUOTED_CHARS_MAX].split("\n"))
        said = Message(MessageRole.ASSISTANT, "\n".join(lines))
        asked = Message(MessageRole.USER, _CORRECTION.format(quoted_json(problem)))
        self.prompt = self.prompt._replace(messages=(*self.prompt.messages, said, asked))

    def _unreadable(self, reason: str) -> Unreadable:
        return Unreadable(self._provenance(), reason[:REASON_CHARS_MAX])

    def spent(self) -> Interpretation | None:
        """What was asked and answered so far, if anything."""
        return self._provenance() if self.calls else None

    def _provenance(self) -> Interpretation:
        return Interpretation(
            interpreter=self.model.name,
            model=self.shape.model,
            prompt_id=self.prompt.id,
            prompt_hash=self.prompt.hash,
            parameters=self.shape.written(),
            attempts=len(self.calls),
            tokens_in=sum(call.tokens_in for call in self.calls),
            tokens_out=sum(call.tokens_out for call in self.calls),
            milliseconds=sum(call.milliseconds for call in self.calls),
            calls=tuple(self.calls),
        )


def _call(request: ModelRequest, answer: Answer) -> ModelCall:
    kept = answer.text if len(answer.text) <= ANSWER_CHARS_MAX else None
    reason = answer.finish_reason
    return ModelCall(
        request=request.identity(),
        answer=kept,
        refusal=None if answer.refusal is None else answer.refusal[:REASON_CHARS_MAX],
        finish_reason=None if reason is None else reason[:64],
        tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out,
        milliseconds=answer.milliseconds,
    )
