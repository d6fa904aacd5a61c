"""An interpreter in front of a scripted endpoint, with the plainest of prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import SecretStr

from processor.engine.conversation import Conversation
from processor.interpreter.limits import Breaker, Pauses, TenantBudgets
from processor.interpreter.model_interpreter import ModelInterpreter
from processor.interpreter.openai_client import Endpoint, OpenAIModel
from processor.interpreter.port import Interpreted, Refused
from processor.interpreter.prompt import Message, MessageRole, Prompt
from processor.interpreter.request import Dialect, Model, Shape
from schemas.utterance import Utterance, UtteranceKind
from tests.interpreter.scripted_endpoint import KEY, MODEL, ScriptedEndpoint

T = TypeVar("T")
WANTED = Shape(MODEL, Dialect.TEXT)


class PlainPrompts:
    """Says the text and nothing else."""

    def statement(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Prompt:
        """Ask for operations."""
        asked = utterance.text if refused is None else f"{utterance.text} {refused.rejections}"
        return self._prompt("statement", asked)

    def candidate(self, conversation: Conversation, utterance: Utterance) -> Prompt:
        """Ask for claims."""
        return self._prompt("candidate", utterance.text)

    def _prompt(self, id_: str, asked: str) -> Prompt:
        messages = (Message(MessageRole.SYSTEM, "Read."), Message(MessageRole.USER, asked))
        return Prompt(id_, "a" * 64, messages)


@dataclass
class Waits:
    """Pauses that take no time, and the clock that they move."""

    slept: list[float] = field(default_factory=list)
    now: float = 0.0

    async def sleep(self, seconds: float) -> None:
        """Remember how long it would have been."""
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        """What the time is."""
        return self.now


def model_at(
    endpoint: ScriptedEndpoint,
    waits: Waits | None = None,
    *,
    dialects: tuple[Dialect, ...] = (Dialect.JSON_SCHEMA,),
    call_s_max: float = 5.0,
    failures_max: int = 100,
) -> OpenAIModel:
    """The model behind an endpoint."""
    waits = waits or Waits()
    return OpenAIModel(
        Endpoint(endpoint.url, SecretStr(KEY), call_s_max),
        WANTED,
        dialects,
        Pauses(sleep=waits.sleep, uniform=lambda low, high: high),
        Breaker(failures_max=failures_max, open_s=10.0, clock=waits.clock),
    )


def with_model(model: OpenAIModel, work: Callable[[OpenAIModel], Awaitable[T]]) -> T:
    """What comes of work with a model, which is closed then."""

    async def main() -> T:
        try:
            return await work(model)
        finally:
            await model.aclose()

    return asyncio.run(main())


def utterance(text: str = "something", **fields: Any) -> Utterance:
    """Something that ann says, to be read."""
    return Utterance(
        conversation_id="c",
        utterance_id="u1",
        speaker="ann",
        text=text,
        at=datetime(2026, 3, 1, tzinfo=UTC),
        **fields,
    )


async def ask(
    model: Model,
    said: Utterance | None = None,
    *,
    budgets: TenantBudgets | None = None,
    utterance_s_max: float = 30.0,
) -> Interpreted:
    """How an utterance is read in an empty conversation."""
    asked = utterance() if said is None else said
    reads = ModelInterpreter(model, PlainPrompts(), budgets or TenantBudgets(), utterance_s_max)
    return await reads.interpret(Conversation.empty("default", "c"), asked, None)


def read(model: OpenAIModel, said: Utterance | None = None, **options: Any) -> Interpreted:
    """The same with a model that is closed then."""
    return with_model(model, lambda model: ask(model, said, **options))


def draft(text: str) -> Utterance:
    """Something that the assistant is about to say."""
    return utterance(text, kind=UtteranceKind.CANDIDATE)
