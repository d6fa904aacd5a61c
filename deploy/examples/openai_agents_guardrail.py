"""An agent of the OpenAI Agents SDK whose words pass the gate before anybody sees them."""

import asyncio
import os

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OutputGuardrailTripwireTriggered,
    Runner,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from standfast.client import AsyncGuard
from standfast.client.openai_agents import output_guardrail


async def main() -> None:
    """Ask the agent once, in the conversation inc-7."""
    set_tracing_disabled(True)
    gate, token = os.environ["STANDFAST_GATE"], os.environ["STANDFAST_TOKEN"]
    async with AsyncGuard(gate, "acme", token, fail="closed", seconds=30) as guard:
        agent = Agent(
            name="assistant",
            model=OpenAIChatCompletionsModel(os.environ["MODEL"], AsyncOpenAI()),
            output_guardrails=[output_guardrail(guard, lambda run: run.context)],
        )
        try:
            said = await Runner.run(agent, "What have we found?", context="inc-7")
            print(said.final_output)
        except OutputGuardrailTripwireTriggered as held:
            print("held:", held.guardrail_result.output.output_info.explanation)


asyncio.run(main())
