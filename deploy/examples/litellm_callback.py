"""Calls through LiteLLM whose answers pass the gate before they are returned."""

import asyncio
import os

import litellm
from litellm.exceptions import GuardrailRaisedException
from standfast.client import AsyncGuard
from standfast.client.litellm import StandfastCallback


async def main() -> None:
    """Ask the model once, in the conversation inc-7."""
    gate, token = os.environ["STANDFAST_GATE"], os.environ["STANDFAST_TOKEN"]
    async with AsyncGuard(gate, "acme", token, fail="closed", seconds=30) as guard:
        litellm.callbacks = [StandfastCallback(guard)]
        try:
            said = await litellm.acompletion(
                model=f"openai/{os.environ['MODEL']}",
                messages=[{"role": "user", "content": "What have we found?"}],
                metadata={"standfast_conversation": "inc-7"},
            )
            print(said.choices[0].message.content)
        except GuardrailRaisedException as held:
            print("held:", held.message)


asyncio.run(main())
