"""The settings of an interpreter arrive where they are to hold."""

from __future__ import annotations

import asyncio

import pytest

from processor.app.interpreters import open_interpreter
from processor.app.settings import interpreter_settings
from processor.interpreter.limits import Breaker, TenantBudgets
from processor.interpreter.matching import MatchingInterpreter
from processor.interpreter.model_interpreter import ModelInterpreter
from processor.interpreter.openai_client import OpenAIModel
from processor.interpreter.prompts import Condition, StandardPrompts
from processor.interpreter.request import Dialect, Shape
from processor.render.situation import render_situation

GIVEN = {
    "KIND": "openai",
    "BASE_URL": "http://127.0.0.1:9/v1",
    "MODEL": "m",
    "DIALECT": "tool",
    "CONDITION": "minimal",
    "PROMPT_TOKENS_MAX": "4001",
    "TEMPERATURE": "0.5",
    "SEED": "3",
    "ANSWER_TOKENS_MAX": "77",
    "CALL_SECONDS_MAX": "11",
    "UTTERANCE_SECONDS_MAX": "12",
    "TRIES_MAX": "4",
    "BREAKER_FAILURES": "6",
    "BREAKER_SECONDS": "13",
    "TENANT_TOKENS_MAX": "1000",
    "TENANT_CALLS_MAX": "14",
    "TENANT_PERIOD": "day",
}


def test_every_setting_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the environment to the client, its bounds, the budgets of tenants and the prompts."""
    for name, value in GIVEN.items():
        monkeypatch.setenv(f"STANDFAST_INTERPRETER_{name}", value)

    async def main() -> None:
        async with open_interpreter(interpreter_settings({})) as opened:
            assert opened is not None
            model, matching = opened.model, opened.interpreter
            assert isinstance(model, OpenAIModel)
            assert isinstance(matching, MatchingInterpreter)
            asking = matching.asked
            assert isinstance(asking, ModelInterpreter)
            assert model.endpoint == (GIVEN["BASE_URL"], None, 11.0)
            assert model.wanted == Shape("m", Dialect.TEXT, 0.5, 3, answer_tokens_max=77)
            assert model.dialects == (Dialect.TOOL,)
            assert model.pauses.tries_max == 4
            assert model.breaker == Breaker(6, 13.0)
            assert asking.budgets == TenantBudgets(1_000, 14, 86_400)
            assert asking.utterance_s_max == 12.0
            assert asking.prompts == StandardPrompts(Condition.MINIMAL, 4_001, render_situation)

    asyncio.run(main())
