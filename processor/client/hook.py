"""What every hook has in common: a text goes through the gate, recorded or not."""

from __future__ import annotations

from .answers import Answer
from .guards import AsyncGuard


async def ask_about(guard: AsyncGuard, conversation: str, text: str, *, record: bool) -> Answer:
    """The answer about a text. Raises RefusedError."""
    if record:
        return await guard.record(conversation, text=text)
    return await guard.check(conversation, text=text)
