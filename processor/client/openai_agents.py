"""An output guardrail for the OpenAI Agents SDK (extra `openai-agents`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents import Agent, GuardrailFunctionOutput, OutputGuardrail, RunContextWrapper

from .guards import AsyncGuard
from .hook import ask_about


def output_guardrail(
    guard: AsyncGuard,
    conversation: Callable[[RunContextWrapper[Any]], str],
    *,
    text: Callable[[Any], str] = str,
    record: bool = True,
) -> OutputGuardrail[Any]:
    """Trips where the gate does not allow what the agent is about to say.

    `conversation` tells from the context of the run which conversation it is, `text` puts an output
    that is not text into words. The `output_info` is the Answer.
    """

    async def check(
        context: RunContextWrapper[Any], _: Agent[Any], output: Any
    ) -> GuardrailFunctionOutput:
        answer = await ask_about(guard, conversation(context), text(output), record=record)
        return GuardrailFunctionOutput(output_info=answer, tripwire_triggered=not answer.allowed)

    return OutputGuardrail(guardrail_function=check, name="standfast")
