"""How an answering model is asked: one question, the context of an arm, a short answer."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, final

from processor.evidence.key import normalised
from processor.interpreter.extract import BadReply, find_object
from processor.interpreter.prompt import Message, MessageRole, Prompt
from processor.interpreter.request import Model, ModelRequest
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


@final
class Said(NamedTuple):
    """What a model answered, and what it cost; the text is empty if it could not be read."""

    text: str
    tokens_in: int
    tokens_out: int


@final
@dataclass(frozen=True)
class QaModel:
    """A model that is asked questions."""

    model: Model

    async def answer(self, asked: Question) -> Said:
        """One answer. Raises EndpointUnavailable and RequestRefused."""
        messages = (
            Message(MessageRole.SYSTEM, _SYSTEM),
            Message(MessageRole.USER, f"Context:\n{asked.context}\n\nQuestion: {asked.question}"),
        )
        prompt = Prompt(PROMPT_ID, sha256(_SYSTEM.encode()).hexdigest(), messages)
        shape = await self.model.shape()
        answer = await self.model.ask(ModelRequest(shape, prompt, _SCHEMA_NAME, _SCHEMA))
        return Said(_answer_in(answer.text), answer.tokens_in, answer.tokens_out)


def _answer_in(text: str) -> str:
    try:
        answer = find_object(text, "answer")["answer"]
    except BadReply:
        return ""
    return answer if isinstance(answer, str) else ""


def matches(answer: str, gold: str) -> bool:
    """Whether an answer is the gold one, but for case, white space and a full stop."""
    return normalised(answer).rstrip(".") == normalised(gold).rstrip(".")


def is_abstention(answer: str) -> bool:
    """Whether the model would not decide."""
    return matches(answer, ABSTAIN)
