"""Puts an interpreter together as the settings say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final

from processor.app.interpreter_settings import InterpreterKind, InterpreterSettings
from processor.interpreter.limits import Breaker, Pauses, TenantBudgets
from processor.interpreter.matching import MatchingInterpreter
from processor.interpreter.model_interpreter import ModelInterpreter
from processor.interpreter.port import Interpreter
from processor.interpreter.prompts import StandardPrompts
from processor.interpreter.recorded import (
    RecordedAnswer,
    RecordedModel,
    RecordingModel,
    answers_in,
    read_cassette,
)
from processor.interpreter.request import Dialect, Model, Shape
from processor.render.situation import render_situation
from replay.interpretations import interpretations

if TYPE_CHECKING:
    from processor.interpreter.openai_client import OpenAIModel

CASSETTE_SUFFIX = ".jsonl"


@final
class Opened(NamedTuple):
    """An interpreter, and the model that it asks."""

    interpreter: Interpreter
    model: Model


@asynccontextmanager
async def open_interpreter(
    settings: InterpreterSettings, through: Callable[[Model], Model] = lambda model: model
) -> AsyncIterator[Opened | None]:
    """The interpreter of the settings, closed at the end; None if there is none.

    `through` may put something between the interpreter and the model. Raises OSError and WireError
    if a cassette cannot be read or written, and StoreError.
    """
    async with AsyncExitStack() as stack:
        model: Model
        match settings.kind:
            case InterpreterKind.NATIVE:
                yield None
                return
            case InterpreterKind.RECORDED:
                assert settings.cassette is not None
                place = settings.cassette
                model = RecordedModel(str(place), _recorded(place))
            case InterpreterKind.OPENAI:
                model = await stack.enter_async_context(aclosing(_openai(settings)))
                if settings.record is not None:
                    cassette = stack.enter_context(settings.record.open("ab"))
                    model = RecordingModel(model, cassette)
        model = through(model)
        yield Opened(_interpreter(settings, model), model)


def _recorded(place: Path) -> Iterator[RecordedAnswer]:
    """The answers of a cassette, or of the history in a store."""
    if place.suffix == CASSETTE_SUFFIX:
        yield from read_cassette(place)
        return
    for provenance in interpretations(place):
        yield from answers_in(provenance)


def _openai(settings: InterpreterSettings) -> OpenAIModel:
    """The client of OpenAI takes half a second to load, which only those wait for who need it."""
    from processor.interpreter.openai_client import Endpoint, OpenAIModel

    assert settings.model is not None
    return OpenAIModel(
        Endpoint(settings.base_url, settings.api_key, settings.call_seconds_max),
        Shape(
            model=settings.model,
            dialect=Dialect.TEXT,
            temperature=settings.temperature,
            seed=settings.seed,
            answer_tokens_max=settings.answer_tokens_max,
        ),
        settings.dialects(),
        Pauses(tries_max=settings.tries_max),
        Breaker(failures_max=settings.breaker_failures, open_s=settings.breaker_seconds),
    )


def _interpreter(settings: InterpreterSettings, model: Model) -> Interpreter:
    prompts = StandardPrompts(settings.condition, settings.prompt_tokens_max, render_situation)
    budgets = TenantBudgets(
        tokens_max=settings.tenant_tokens_max,
        calls_max=settings.tenant_calls_max,
        period_s=settings.tenant_period.seconds,
    )
    asking = ModelInterpreter(model, prompts, budgets, settings.utterance_seconds_max)
    return MatchingInterpreter(asking)
