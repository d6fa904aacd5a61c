"""What a model is told and asked: the messages, and what names them in the log.

Who writes prompts knows nothing of endpoints; who calls an endpoint knows nothing of their wording.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol, final

from processor.engine.conversation import Conversation
from processor.interpreter.port import Refused
from schemas.utterance import Utterance


class MessageRole(StrEnum):
    """Who speaks in a message to a model."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@final
class Message(NamedTuple):
    """One message to a model."""

    role: MessageRole
    content: str


@final
class Prompt(NamedTuple):
    """The messages to send; `hash` is the SHA-256 (hex) of the versioned files they were made from.

    Two requests with the same id and hash differ in their conversation and utterance only.
    """

    id: str
    hash: str
    messages: tuple[Message, ...]


class Prompts(Protocol):
    """Writes the prompt for an utterance in its conversation; pure."""

    def statement(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Prompt:
        """Ask which operations a statement makes; `refused` is the last try and why it failed."""

    def candidate(self, conversation: Conversation, utterance: Utterance) -> Prompt:
        """Ask which claims a draft makes and on which records each of them rests."""
