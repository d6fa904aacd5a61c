"""The JSON Schema of a reply, derived from the models of the operations.

It says the shape and nothing else, in the words that every server digests: no references, no
defaults, no lengths of strings, no patterns; a choice is `anyOf`, every field is required. What it
cannot say is checked when the reply is read. The rationale comes first, because small models decide
better when they have written down why.

Left out is what an answer may not decide: who speaks. Formulas are text.
A record that is introduced where it is cited names its premises by their ids, so nothing nests.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from processor.interpreter.extract import RATIONALE
from schemas.contract import Contract
from schemas.operations import InlineRecord, Operation

JsonObject = dict[str, Any]

STATEMENT, CANDIDATE = "operations", "claims"
"""The field of a reply that holds the answer."""
OPERATIONS_MAX = 32
CLAIMS_MAX = 32
LIST_MAX = 16
_LEFT_OUT = ("speaker",)
_TEXT: JsonObject = {"type": "string"}
_NULL: JsonObject = {"type": "null"}
_INLINE = InlineRecord.__name__


@cache
def statement_schema() -> JsonObject:
    """What a reply to a statement looks like: a rationale, then operations."""
    union, *_ = get_args(Operation)
    operations = [_contract(model) for model in get_args(union)]
    return _reply(STATEMENT, {"anyOf": operations}, OPERATIONS_MAX)


@cache
def candidate_schema() -> JsonObject:
    """What a reply to a draft looks like: a rationale, then claims with what they rest on."""
    claim = _object({"text": _TEXT, "records": _list(_TEXT, LIST_MAX)})
    return _reply(CANDIDATE, claim, CLAIMS_MAX)


def _reply(field: str, item: JsonObject, count_max: int) -> JsonObject:
    return _object({RATIONALE: _TEXT, field: _list(item, count_max)})


def _contract(model: type[Contract]) -> JsonObject:
    schema = model.model_json_schema()
    return _shape(schema, schema.get("$defs", {}))


def _shape(schema: JsonObject, parts: JsonObject, *, nested: bool = False) -> JsonObject:
    """The shape that a JSON Schema of pydantic describes."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _shape(parts[name], parts, nested=name == _INLINE)
    choices = schema.get("anyOf", schema.get("oneOf"))
    if choices is not None:
        kept = [each for each in choices if not (nested and _INLINE in each.get("$ref", ""))]
        shapes = [_shape(each, parts, nested=nested) for each in kept]
        return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
    if "const" in schema or "enum" in schema:
        return {"type": "string", "enum": schema.get("enum", [schema.get("const")])}
    if schema["type"] == "array":
        return _list(_shape(schema["items"], parts, nested=nested), LIST_MAX)
    if schema["type"] == "object":
        return _object(
            {
                name: _field(name, field, parts, nested=nested)
                for name, field in schema["properties"].items()
                if name not in _LEFT_OUT and not (nested and name == "atoms")
            }
        )
    return {"type": schema["type"]}


def _field(name: str, schema: JsonObject, parts: JsonObject, *, nested: bool) -> JsonObject:
    if name == "formula":
        return {"anyOf": [_TEXT, _NULL]}
    return _shape(schema, parts, nested=nested)


def _object(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(item: JsonObject, count_max: int) -> JsonObject:
    return {"type": "array", "items": item, "maxItems": count_max}
