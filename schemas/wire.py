"""Canonical bytes: how a contract is written and read back.

Writing sorts keys and leaves nothing to the platform; reading is strict and names the place of an
error. A canonical *content* form, which digests use, also leaves out fields that say nothing (null,
false, empty), so that a field added later with such a default does not change old digests.
"""

from __future__ import annotations

from typing import Any

import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError

from schemas.log import LogEvent
from schemas.upcast import UPCASTERS, Upcasters, upcast
from schemas.utterance import Utterance

_WRITE = orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z

_LOG_EVENT: TypeAdapter[LogEvent] = TypeAdapter(LogEvent)


class WireError(ValueError):
    """Bytes that are no valid contract; `place` is the path of the first bad field.

    `str(error)` reads `operations.0.record: String should match pattern ...`.
    """

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.place = place
        self.problem = problem


def canonical_bytes(contract: BaseModel) -> bytes:
    """The stored form: sorted keys, UTF-8, every field."""
    return orjson.dumps(contract, default=_fields, option=_WRITE)


def canonical_content(value: object) -> bytes:
    """The digested form of a contract or a plain value: sorted keys, silent fields left out."""
    return orjson.dumps(value, default=_telling_fields, option=_WRITE)


def decode_utterance(line: bytes) -> Utterance:
    """Read one utterance. Raises WireError with the place of the first error."""
    try:
        return Utterance.model_validate_json(line)
    except ValidationError as invalid:
        raise _wire_error(invalid) from invalid


def decode_log_event(stored: bytes, upcasters: Upcasters = UPCASTERS) -> LogEvent:
    """Read one event of the log, bringing old versions up to date first. Raises WireError."""
    try:
        return _LOG_EVENT.validate_json(stored)
    except ValidationError as invalid:
        current = upcast(stored, upcasters)
        if current is None:
            raise _wire_error(invalid) from invalid
    try:
        return _LOG_EVENT.validate_json(current)
    except ValidationError as invalid:
        raise _wire_error(invalid) from invalid


def _fields(value: object) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        return value.__dict__
    raise TypeError(f"{type(value).__name__} has no canonical bytes")


def _telling_fields(value: object) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        return {name: field for name, field in value.__dict__.items() if field}
    raise TypeError(f"{type(value).__name__} has no canonical bytes")


def _wire_error(invalid: ValidationError) -> WireError:
    """The first error of a validation, with its path as people write it."""
    first = invalid.errors(include_url=False, include_context=False, include_input=False)[0]
    return WireError(".".join(str(part) for part in first["loc"]), first["msg"])
