"""What is asked of a model, what it answers, and the identity that ties the two together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, Self, final

from processor.interpreter.prompt import Prompt
from schemas.wire import canonical_bytes


class Dialect(StrEnum):
    """How a server is told the JSON Schema of the answer."""

    JSON_SCHEMA = "json_schema"
    """`response_format` of type json_schema: OpenAI, vLLM, Ollama, llama.cpp, most gateways."""
    JSON_OBJECT = "json_object"
    """`response_format` of type json_object with the schema beside it: llama-cpp-python."""
    TOOL = "tool"
    """A function that must be called; its arguments are the answer."""
    TEXT = "text"
    """The schema stands in the prompt, and the answer is found in the text."""


class LimitField(StrEnum):
    """What the server calls the bound on the answer's length."""

    MAX_TOKENS = "max_tokens"
    MAX_COMPLETION_TOKENS = "max_completion_tokens"


@final
class Shape(NamedTuple):
    """What is the same in every request to a model; None is not sent."""

    model: str
    dialect: Dialect
    temperature: float | None = 0.0
    seed: int | None = 0
    limit_field: LimitField = LimitField.MAX_TOKENS
    answer_tokens_max: int = 2_048

    def written(self) -> dict[str, str]:
        """The shape but for the model, as an interpretation's parameters."""
        fields = self._asdict()
        del fields["model"]
        return {name: str(value) for name, value in fields.items() if value is not None}

    @classmethod
    def read(cls, model: str, written: Mapping[str, str]) -> Self:
        """The shape that was written so. Raises KeyError or ValueError."""
        temperature, seed = written.get("temperature"), written.get("seed")
        return cls(
            model=model,
            dialect=Dialect(written["dialect"]),
            temperature=None if temperature is None else float(temperature),
            seed=None if seed is None else int(seed),
            limit_field=LimitField(written["limit_field"]),
            answer_tokens_max=int(written["answer_tokens_max"]),
        )


@final
class ModelRequest(NamedTuple):
    """One request; `schema_name` names the schema where a server wants a name."""

    shape: Shape
    prompt: Prompt
    schema_name: str
    schema: dict[str, Any]

    def identity(self) -> str:
        """SHA-256 (hex) of everything that shapes the answer; where the endpoint is does not."""
        asked = {
            "model": self.shape.model,
            "parameters": self.shape.written(),
            "prompt": [self.prompt.id, self.prompt.hash],
            "messages": [list(message) for message in self.prompt.messages],
            "schema": [self.schema_name, self.schema],
        }
        return hashlib.sha256(canonical_bytes(asked)).hexdigest()


@final
class Answer(NamedTuple):
    """What a model answered: text or a refusal, why it ended, and what it cost."""

    text: str
    refusal: str | None = None
    finish_reason: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    milliseconds: int = 0


class RequestRefused(Exception):  # noqa: N818 - it says what is wrong
    """The endpoint will not take this very request: too long, or its content is not allowed.

    `parameter` is the one that the endpoint does not take, if it names one.
    """

    parameter: str | None = None


class UnfitEndpoint(Exception):  # noqa: N818 - it says what is wrong
    """The endpoint cannot be used as it is set up: it ignores the schema, say."""


class Model(Protocol):
    """Answers requests."""

    @property
    def name(self) -> str:
        """How the log calls the interpreter that asks it."""

    async def shape(self) -> Shape:
        """What requests must look like. Raises EndpointUnavailable or UnfitEndpoint."""

    async def ask(self, request: ModelRequest) -> Answer:
        """One answer. Raises EndpointUnavailable or RequestRefused."""
