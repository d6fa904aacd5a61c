"""From what pydantic writes to plain JSON Schema."""

from __future__ import annotations


def say_it_in_full(schema: object) -> None:
    """Bring what pydantic writes to plain JSON Schema, in place.

    OpenAPI's `discriminator` goes: oneOf over constant tags says the same. Keys that fit no
    pattern are refused.
    """
    if isinstance(schema, dict):
        if isinstance(schema.get("discriminator"), dict) and "oneOf" in schema:
            del schema["discriminator"]
        if "patternProperties" in schema:
            schema["additionalProperties"] = False
        for part in schema.values():
            say_it_in_full(part)
    elif isinstance(schema, list):
        for part in schema:
            say_it_in_full(part)
