"""Puts a prompt together: fixed wording, the state, the utterance, and what was refused before.

What changes with every utterance comes last, so that a provider that caches the beginnings of
prompts has most of them already. Everything from outside is quoted; ids, names and roles are of a
pattern that holds neither blanks nor quotes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol, final

from processor.engine.conversation import Conversation
from processor.interpreter.port import Refused
from processor.interpreter.prompt import Message, MessageRole, Prompt
from processor.interpreter.prompts.texts import (
    Condition,
    Wording,
    candidate_wording,
    refused_text,
    statement_wording,
)
from schemas.quote import quoted, quoted_json
from schemas.utterance import Utterance
from schemas.wire import canonical_content

BUDGET_TOKENS = 8_000


class RenderState(Protocol):
    """Says what a model needs to know of a conversation to read a text; pure."""

    def __call__(
        self, conversation: Conversation, text: str, budget_tokens: int, beside: str
    ) -> str:
        """The state in words, such that with `beside` it takes at most `budget_tokens`."""


@final
@dataclass(frozen=True)
class StandardPrompts:
    """The prompts that are sent with the wording of this package; implements `Prompts`.

    A prompt that shows the state takes at most `budget_tokens`, unless the fixed wording and the
    utterance alone take more: neither is cut, and then no state is shown. Drafts are always read
    with the state, because only it has the ids of the records.
    """

    condition: Condition
    budget_tokens: int
    render_state: RenderState

    def statement(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Prompt:
        """Ask which operations a statement makes."""
        wording = statement_wording(self.condition)
        asked = _statement(conversation, utterance)
        if refused is not None:
            asked += _refused(refused)
        if self.condition is not Condition.STATE_AUGMENTED:
            return _prompt(wording, asked)
        return self._with_state(wording, conversation, utterance, asked)

    def candidate(self, conversation: Conversation, utterance: Utterance) -> Prompt:
        """Ask which claims a draft makes."""
        asked = f"# Draft\n{_said(utterance)}\n"
        return self._with_state(candidate_wording(), conversation, utterance, asked)

    def _with_state(
        self, wording: Wording, conversation: Conversation, utterance: Utterance, asked: str
    ) -> Prompt:
        beside = wording.text + asked
        state = self.render_state(conversation, utterance.text, self.budget_tokens, beside)
        named = f"{wording.id}/{self.budget_tokens}"
        hashed = hashlib.sha256(f"{wording.hash}/{self.budget_tokens}".encode()).hexdigest()
        return _prompt(Wording(named, hashed, wording.text), state + asked)


def _prompt(wording: Wording, asked: str) -> Prompt:
    messages = (
        Message(MessageRole.SYSTEM, wording.text),
        Message(MessageRole.USER, asked),
    )
    return Prompt(wording.id, wording.hash, messages)


def _statement(conversation: Conversation, utterance: Utterance) -> str:
    fresh = fresh_prefix(conversation)
    return (
        f"# Utterance\nTurn {conversation.turn + 1}. "
        f"New ids here: {fresh}1, {fresh}2, and so on.\n{_said(utterance)}\n"
    )


def fresh_prefix(conversation: Conversation) -> str:
    """What the ids of the next turn may begin with, so that they meet no id that is there.

    Two turns never begin alike, so only an id that somebody else chose can stand in the way.
    """
    prefix = f"t{conversation.turn + 1}."
    while conversation.state.is_taken(f"{prefix}1"):
        prefix = f"{prefix[:-1]}n."
    return prefix


def _said(utterance: Utterance) -> str:
    return (
        f'{{"speaker": {quoted(utterance.speaker)}, "role": {quoted(utterance.role)}, '
        f'"text": {quoted(utterance.text)}}}'
    )


def _refused(refused: Refused) -> str:
    """The last reading and why it was refused, in brief.

    Both are data: a model made them, with words of the utterance in them.
    """
    operations = canonical_content(refused.reading.operations).decode()
    reasons = "".join(
        f"- operations[{rejection.index}], {rejection.code}: {quoted(rejection.reason)}\n"
        for rejection in refused.rejections
    )
    return (
        f"# Your last answer\n{refused_text()}"
        f'{{"operations": {quoted_json(operations)}}}\nRefused:\n{reasons}'
    )
