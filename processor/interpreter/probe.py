"""Finds out how an endpoint wants to be asked, and that it keeps to the schema it is given.

A server that drops the schema silently would let a model answer in prose, and prose that cannot be
read would look like a model that cannot read. So the first requests ask for one thing and give a
schema that allows only another: whoever answers what was asked for ignores the schema.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from processor.interpreter.extract import BadReply, find_object
from processor.interpreter.port import EndpointUnavailable
from processor.interpreter.prompt import Message, MessageRole, Prompt
from processor.interpreter.reply_schema import STATEMENT, JsonObject, statement_schema
from processor.interpreter.request import (
    Answer,
    Dialect,
    LimitField,
    ModelRequest,
    RequestRefused,
    Shape,
    UnfitEndpoint,
)

Ask = Callable[[ModelRequest], Awaitable[Answer]]

_WORD: Final = "standfast"
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [_WORD]}},
    "required": ["word"],
    "additionalProperties": False,
}
_OTHERWISE: Final = 'Answer with this JSON object and nothing else: {"colour": "green"}'
_LIKEWISE: Final = f'Answer with this JSON object: {{"word": "{_WORD}"}}'
_NOTHING: Final = 'Nothing was said. Answer: {"rationale": "nothing was said", "operations": []}'
_ANSWER_TOKENS_MAX: Final = 512
_ADAPTATIONS_MAX: Final = 3
_FORCED: Final = (Dialect.JSON_SCHEMA, Dialect.JSON_OBJECT)
"""Dialects in which the server guides every token; the others can only be tried."""


async def find_shape(ask: Ask, wanted: Shape, dialects: Sequence[Dialect]) -> Shape:
    """The first dialect that works, with the parameters that the endpoint takes.

    Raises UnfitEndpoint, naming what each dialect lacks, and EndpointUnavailable if it may be for
    a fault that passes.
    """
    problems: list[str] = []
    unavailable: EndpointUnavailable | None = None
    for dialect in dialects:
        try:
            found = await _try(ask, wanted._replace(dialect=dialect))
        except EndpointUnavailable as failure:  # some servers answer 500 to what they do not know
            unavailable = failure
            continue
        if isinstance(found, Shape):
            return found
        problems.append(f"{dialect.value}: {found}")
    if unavailable is not None:
        raise unavailable
    raise UnfitEndpoint(f"model {wanted.model!r} cannot be used: {'; '.join(problems)}")


async def _try(ask: Ask, shape: Shape) -> Shape | str:
    """The shape with the parameters that work, or what is wrong with its dialect."""
    for _ in range(1 + _ADAPTATIONS_MAX):
        try:
            problem = await _self_test(ask, shape)
        except RequestRefused as refused:
            adapted = _without(shape, refused.parameter)
            if adapted is None:
                return f"the server refuses it ({refused})"
            shape = adapted
        else:
            return problem or shape
    return "the server refuses one parameter after the other"


async def _self_test(ask: Ask, shape: Shape) -> str | None:
    """What the answer to a schema shows to be wrong, if anything. Raises RequestRefused."""
    short = shape._replace(answer_tokens_max=_ANSWER_TOKENS_MAX)
    said = _OTHERWISE if shape.dialect in _FORCED else _LIKEWISE
    answer = await ask(ModelRequest(short, _prompt(said), "self_test", _SCHEMA))
    try:
        if find_object(answer.text, "word") != {"word": _WORD}:
            return "the server ignores the schema"
    except BadReply as bad:
        return f"the server ignores the schema: {bad}"
    await ask(ModelRequest(short, _prompt(_NOTHING), STATEMENT, statement_schema()))
    return None


def _without(shape: Shape, parameter: str | None) -> Shape | None:
    """The shape with a parameter left out or renamed, if it can be."""
    match parameter:
        case "temperature" if shape.temperature is not None:
            return shape._replace(temperature=None)
        case "seed" if shape.seed is not None:
            return shape._replace(seed=None)
        case "max_tokens" if shape.limit_field is LimitField.MAX_TOKENS:
            return shape._replace(limit_field=LimitField.MAX_COMPLETION_TOKENS)
        case _:
            return None


def _prompt(said: str) -> Prompt:
    return Prompt("self_test", "0" * 64, (Message(MessageRole.USER, said),))
