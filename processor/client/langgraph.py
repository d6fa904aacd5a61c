"""A node for LangGraph, and the choice of where to go from it (extra `langgraph`).

A node is a function of the graph's state, so nothing of LangGraph is needed here but its messages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from .guards import AsyncGuard
from .hook import ask_about

State = Mapping[str, Any]
KEY = "standfast"
"""Under which key of the state the answer stands; the graph's schema must have it."""


def last_message(state: State) -> str:
    """The words of the last of the state's messages."""
    message = state["messages"][-1]
    content = message["content"] if isinstance(message, Mapping) else message.content
    if isinstance(content, str):
        return content
    return "".join(block if isinstance(block, str) else block.get("text", "") for block in content)


def guard_node(
    guard: AsyncGuard,
    conversation: Callable[[State], str],
    *,
    text: Callable[[State], str] = last_message,
    record: bool = True,
) -> Callable[[State], Awaitable[dict[str, Any]]]:
    """A node that asks the gate about what the state is about to say.

    It writes the answer under KEY, in JSON values, so that every checkpointer can keep it.
    """

    async def standfast(state: State) -> dict[str, Any]:
        answer = await ask_about(guard, conversation(state), text(state), record=record)
        return {KEY: answer.as_dict()}

    return standfast


def route(state: State) -> Literal["allowed", "held"]:
    """For `add_conditional_edges` behind the node; held also where no answer stands."""
    answer = state.get(KEY) or {}
    return "allowed" if answer.get("allowed") is True else "held"
