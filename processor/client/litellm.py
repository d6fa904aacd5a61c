"""A callback for LiteLLM (extra `litellm`): what the gate does not allow is raised, not returned.

LiteLLM runs it for calls that are awaited (`acompletion`). A call that streams would show its words
before they can be checked, so one that names a conversation is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

from litellm.exceptions import GuardrailRaisedException
from litellm.integrations.custom_guardrail import CustomGuardrail
from litellm.types.utils import ModelResponse

from .answers import UNDECIDED
from .guards import AsyncGuard
from .hook import ask_about

NAME = "standfast"


def named_conversation(request: Mapping[str, Any]) -> str | None:
    """The conversation that a call names: `metadata={"standfast_conversation": "inc-7"}`."""
    metadata = request.get("metadata") or {}
    named = metadata.get("standfast_conversation")
    return named if isinstance(named, str) else None


@final
class StandfastCallback(CustomGuardrail):  # type: ignore[misc] # publishes no types for it
    """Goes into `litellm.callbacks`. A call for which `conversation` is None is not checked.

    What is not allowed raises litellm's GuardrailRaisedException with the explanation.
    """

    def __init__(
        self,
        guard: AsyncGuard,
        *,
        conversation: Callable[[Mapping[str, Any]], str | None] = named_conversation,
        record: bool = True,
    ) -> None:
        super().__init__(guardrail_name=NAME)
        self._guard = guard
        self._conversation = conversation
        self._record = record

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: Any
    ) -> dict[str, Any] | None:
        """Before the model is asked: refuse to stream."""
        if kwargs.get("stream") and self._conversation(kwargs) is not None:
            raise GuardrailRaisedException(NAME, "a stream is shown before it can be checked")
        return None

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: Any
    ) -> Any:
        """When it has answered: ask about the text of every choice."""
        conversation = self._conversation(request_data)
        if conversation is None or not isinstance(response, ModelResponse):
            return None
        for choice in response.choices:
            if text := choice.message.content:
                answer = await ask_about(self._guard, conversation, text, record=self._record)
                if not answer.allowed:
                    raise GuardrailRaisedException(
                        NAME,
                        answer.explanation,
                        blocked_content=answer.outcome not in UNDECIDED,
                    )
        return None
