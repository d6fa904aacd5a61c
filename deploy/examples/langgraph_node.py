"""A graph of LangGraph in which a node asks the gate, and an edge goes where its answer leads."""

import asyncio
import os
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from openai import AsyncOpenAI
from standfast.client import AsyncGuard
from standfast.client.langgraph import guard_node, route


class State(TypedDict, total=False):
    """What the graph carries; the gate's answer stands under `standfast`."""

    messages: Annotated[list[Any], add_messages]
    standfast: dict[str, Any]


async def draft(state: State) -> State:
    """Let the model answer."""
    asked = [{"role": "user", "content": message.content} for message in state["messages"]]
    completion = await AsyncOpenAI().chat.completions.create(
        model=os.environ["MODEL"], messages=asked
    )
    return {"messages": [{"role": "assistant", "content": completion.choices[0].message.content}]}


def show(state: State) -> None:
    """Say what was allowed."""
    print(state["messages"][-1].content)


def hold(state: State) -> None:
    """Say why it was not."""
    print("held:", state["standfast"]["explanation"])


async def main() -> None:
    """Run the graph once, in the conversation inc-7."""
    gate, token = os.environ["STANDFAST_GATE"], os.environ["STANDFAST_TOKEN"]
    async with AsyncGuard(gate, "acme", token, fail="closed", seconds=30) as guard:
        graph = StateGraph(State)
        graph.add_node("draft", draft)
        graph.add_node("guard", guard_node(guard, lambda state: "inc-7"))
        graph.add_node("show", show)
        graph.add_node("hold", hold)
        graph.add_edge(START, "draft")
        graph.add_edge("draft", "guard")
        graph.add_conditional_edges("guard", route, {"allowed": "show", "held": "hold"})
        graph.add_edge("show", END)
        graph.add_edge("hold", END)
        await graph.compile().ainvoke({"messages": ["What have we found?"]})


asyncio.run(main())
