"""The four ways to ask for an answer that follows a schema, and where the answer then stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, assert_never, cast, final

import orjson
from pydantic import BaseModel, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from processor.interpreter.prompt import Message, MessageRole
from processor.interpreter.request import Answer, Dialect, ModelRequest

ORDER = (Dialect.JSON_SCHEMA, Dialect.JSON_OBJECT, Dialect.TOOL, Dialect.TEXT)
"""In which they are tried: those first in which servers keep to the schema."""
CHARS_PER_TOKEN = 4
"""Where a server does not say what a call cost."""

_FAILED = "error"
"""Why an answer ended, where a gateway lost the model in the midst of it."""
_AS_TEXT = "Answer with one JSON object and nothing else. It follows this JSON Schema:\n"


def body_of(request: ModelRequest) -> dict[str, Any]:
    """The body of the request to `chat/completions`."""
    shape = request.shape
    body: dict[str, Any] = {
        "model": shape.model,
        "messages": _messages(request.prompt.messages),
        shape.limit_field.value: shape.answer_tokens_max,
    }
    if shape.temperature is not None:
        body["temperature"] = shape.temperature
    if shape.seed is not None:
        body["seed"] = shape.seed
    named = {"name": request.schema_name, "strict": True}
    match shape.dialect:
        case Dialect.JSON_SCHEMA:
            described = {**named, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
        case Dialect.JSON_OBJECT:
            body["response_format"] = {"type": "json_object", "schema": request.schema}
        case Dialect.TOOL:
            function = {**named, "parameters": request.schema}
            body["tools"] = [{"type": "function", "function": function}]
            choice = {"type": "function", "function": {"name": request.schema_name}}
            body["tool_choice"] = choice
        case Dialect.TEXT:
            body["messages"] = _messages(_with_schema(request))
        case _:
            assert_never(shape.dialect)
    return body


def _messages(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role.value, "content": message.content} for message in messages]


def _with_schema(request: ModelRequest) -> list[Message]:
    """The schema at the end of what comes first, so that equal beginnings stay equal."""
    instruction = _AS_TEXT + orjson.dumps(request.schema).decode()
    first, *rest = request.prompt.messages
    if first.role is not MessageRole.SYSTEM:
        return [Message(MessageRole.SYSTEM, instruction), first, *rest]
    return [first._replace(content=f"{first.content}\n\n{instruction}"), *rest]


class _Function(BaseModel):
    arguments: str = ""


class _ToolCall(BaseModel):
    function: _Function = _Function()


class _Said(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(BaseModel):
    message: _Said
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int = Field(ge=0, le=2**40)
    completion_tokens: int = Field(ge=0, le=2**40)


def _possible(usage: object, read: ValidatorFunctionWrapHandler) -> _Usage | None:
    """What was counted; None where that cannot be, since an answer is not lost over its price."""
    try:
        return cast("_Usage | None", read(usage))
    except ValidationError:
        return None


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: Annotated[_Usage | None, WrapValidator(_possible)] = None


@final
class NoCompletion(NamedTuple):
    """What came is not the answer of an endpoint, whatever its status said."""

    problem: str


def answer_of(request: ModelRequest, body: bytes, milliseconds: int) -> Answer | NoCompletion:
    """The answer in the body of a response."""
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return NoCompletion(f"the response is no completion: {place or first['type']}")
    choice = completion.choices[0]
    if choice.finish_reason == _FAILED:
        return NoCompletion("the answer ends in an error")
    text = _text(choice.message)
    usage = completion.usage or _estimated(request, text)
    return Answer(
        text=text,
        refusal=choice.message.refusal or None,
        finish_reason=choice.finish_reason,
        tokens_in=usage.prompt_tokens,
        tokens_out=usage.completion_tokens,
        milliseconds=milliseconds,
    )


def _text(said: _Said) -> str:
    """The arguments of the calls if there are any: several are several answers, which is none."""
    if said.tool_calls:
        return "\n".join(call.function.arguments for call in said.tool_calls)
    return said.content or ""


def _estimated(request: ModelRequest, text: str) -> _Usage:
    asked = sum(len(message.content) for message in request.prompt.messages)
    return _Usage(
        prompt_tokens=-(-asked // CHARS_PER_TOKEN),
        completion_tokens=-(-len(text) // CHARS_PER_TOKEN),
    )
