"""What a worker appended itself is not read a second time, and that changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import orjson

from processor.app.interpret import interpret
from processor.app.messages import OPERATIONS, Delivered, log_message
from processor.app.progress import FoldProgress
from processor.app.reduce_agent import Folded, ReduceAgent
from processor.engine.conversation import Conversation
from schemas.log import OperationsAppended
from schemas.utterance import Utterance
from tests.faults.test_input import utterance

Answer = TypeVar("Answer")


class Memory:
    """Keeps one conversation."""

    def __init__(self) -> None:
        self.held = Conversation.empty("acme", "c")

    async def conversation(self, tenant_id: str, conversation_id: str) -> Conversation:
        """The one."""
        assert (tenant_id, conversation_id) == ("acme", "c")
        return self.held

    async def apart(self, conversation: Conversation, work: Callable[[], Answer]) -> Answer:
        """Here it is done at once."""
        del conversation
        return work()

    def keep(self, *_: object) -> None:
        """It is kept already."""

    def passed_over(self, message: Delivered) -> None:
        """Nothing is written down here."""

    async def derived_again(self, event: object) -> tuple[()]:
        """Nothing is folded twice here."""
        raise AssertionError(event)


def folded(key: bytes, *, is_known: bool) -> Folded | None:
    """What is folded of an event that is delivered under a key."""
    memory = Memory()
    said = Utterance.model_validate_json(orjson.dumps(utterance("u1")))
    event = interpret(memory.held, said)
    assert isinstance(event, OperationsAppended)
    value = log_message(event, 0).value
    assert value is not None
    known = {value: event} if is_known else {}
    agent = ReduceAgent(memory, FoldProgress(), appended=lambda value: known.pop(value, None))
    return asyncio.run(agent.fold(Delivered(OPERATIONS, 0, 0, key, value)))


def test_an_event_that_is_known_is_what_would_be_read() -> None:
    """Equal, with all that is derived from it."""
    assert folded(b"acme/c", is_known=True) == folded(b"acme/c", is_known=False)
    assert folded(b"acme/c", is_known=True) is not None


def test_its_bytes_under_another_key_are_passed_over_all_the_same() -> None:
    """Whoever copies them to another conversation gets nothing by it."""
    assert folded(b"acme/d", is_known=True) is None
    assert folded(b"acme/d", is_known=False) is None
