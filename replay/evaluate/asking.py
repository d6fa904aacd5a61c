"""How an answering model is asked: one question, the context of an arm, a short answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple, final

from processor.evidence.key import normalised
from processor.interpreter.extract import BadReply, find_object
from processor.interpreter.prompt import Message, MessageRole, Prompt
from processor.interpreter.request import Answer, Model, ModelRequest, RequestRefused
from replay.evaluate.benchmark import Question

ABSTAIN = "uncertain"
"""What a model says if the context does not decide."""
PROMPT_ID = "evaluate/question/v1"
_SYSTEM = (
    "Answer the question from the context alone, in as few words as possible: a name, a date, a "
    "value, or True or False. If the context does not decide between several answers, the answer "
    f'is "{ABSTAIN}". Reply with a JSON object: first "reason", one short sentence, then "answer".'
)
_SCHEMA_NAME = "answer"
_SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "answer": {"type": "string"}},
    "required": ["reason", "answer"],
    "additionalProperties": False,
}


class Failure(StrEnum):
    """Why there is no answer; it is then neither right nor wrong."""

    UNREADABLE = "unreadable"
    """There is none in what the model wrote."""
    CUT = "cut"
    """It was cut at the bound on its length."""
    REFUSED = "refused"
    """The model would not, or the endpoint did not take the question: too long, say."""


@final
class Said(NamedTuple):
    """What a model answered, and what that took; without an answer, why there is none."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    failure: Failure | None = None


@final
@dataclass(frozen=True)
class QaModel:
    """A model that is asked questions."""

    model: Model

    async def answer(self, asked: Question) -> Said:
        """One answer, or why there is none. Raises EndpointUnavailable."""
        messages = (
            Message(MessageRole.SYSTEM, _SYSTEM),
            Message(MessageRole.USER, f"Context:\n{asked.context}\n\nQuestion: {asked.question}"),
        )
        prompt = Prompt(PROMPT_ID, sha256(_SYSTEM.encode()).hexdigest(), messages)
        shape = await self.model.shape()
        try:
            answer = await self.model.ask(ModelRequest(shape, prompt, _SCHEMA_NAME, _SCHEMA))
        except RequestRefused:
            return Said("", failure=Failure.REFUSED)
        text = _answer_in(answer.text)
        failure = _why_none(answer) if text is None else None
        return Said(text or "", answer.tokens_in, answer.tokens_out, failure)


def _answer_in(text: str) -> str | None:
    """The answer in a reply, if there is one; a number or a truth value counts as written."""
    try:
        answer = find_object(text, "answer")["answer"]
    except BadReply:
        return None
    return answer if isinstance(answer, str) else json.dumps(answer) if _is_plain(answer) else None


def _is_plain(answer: object) -> bool:
    return isinstance(answer, bool | int | float)


def _why_none(answer: Answer) -> Failure:
    if answer.refusal is not None or answer.finish_reason == "content_filter":
        return Failure.REFUSED
    return Failure.CUT if answer.finish_reason == "length" else Failure.UNREADABLE


def matches(answer: str, gold: str) -> bool:
    """Whether an answer is the gold one, but for case, white space and a full stop."""
    return normalised(answer).rstrip(".") == normalised(gold).rstrip(".")


def is_abstention(answer: str) -> bool:
    """Whether the model would not decide."""
    return matches(answer, ABSTAIN)
