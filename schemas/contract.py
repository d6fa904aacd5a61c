"""The base of every contract, and the bounded field types they share.

A contract is frozen, strict and closed: a field that is not declared here is an error, never
silently dropped. Every string and every list has an upper bound, so that one hostile line costs
a bounded amount of memory.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
)
from pydantic.config import JsonDict

UTTERANCE_BYTES_MAX = 1_048_576
TEXT_CHARS_MAX = 262_144
CLAIM_CHARS_MAX = 8_192
REASON_CHARS_MAX = 4_096
OPERATIONS_MAX = 256
REFERENCES_MAX = 512
AGENTS_MAX = 256
VARIABLES_MAX = 1_024


class Contract(BaseModel):
    """A frozen, strict model that refuses fields it does not know."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        ser_json_bytes="base64",
        json_schema_serialization_defaults_required=True,
    )


def given(*names: str) -> JsonDict:
    """The JSON Schema of an object in which each of these fields is there and not null."""
    return {
        "properties": {name: {"not": {"type": "null"}} for name in names},
        "required": list(names),
    }


_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
    r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


def _read_moment(value: object, info: ValidationInfo) -> object:
    """A moment from JSON text; pydantic alone would also take "1700000000" for seconds."""
    if info.mode != "json" or not isinstance(value, str):
        return value
    try:
        if _MOMENT.fullmatch(value):
            return datetime.fromisoformat(value.upper())
    except ValueError:
        pass
    raise ValueError("a moment is written in ISO 8601 with a zone, as in 2026-03-01T02:31:00Z")


def _to_utc(moment: datetime) -> datetime:
    """The same moment in UTC, so that equal moments have equal bytes."""
    try:
        return moment.astimezone(UTC)
    except OverflowError as overflow:
        raise ValueError("the moment lies outside the calendar once it is in UTC") from overflow


Timestamp = Annotated[
    AwareDatetime,
    BeforeValidator(_read_moment),
    AfterValidator(_to_utc),
    Field(json_schema_extra={"pattern": f"^{_MOMENT.pattern}$"}),
]
"""A moment with a zone, kept in UTC to the microsecond. A moment without a zone is refused.

Clocks that count nanoseconds write up to nine digits after the second; what is finer than a
microsecond is cut off, not rounded.
"""

Text = Annotated[str, Field(max_length=TEXT_CHARS_MAX)]
Claim = Annotated[str, Field(min_length=1, max_length=CLAIM_CHARS_MAX)]
Reason = Annotated[str, Field(max_length=REASON_CHARS_MAX)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Sequence = Annotated[int, Field(ge=1, le=2**53)]
"""Place of an event in its conversation's log, from 1 and without gaps."""
Turn = Annotated[int, Field(ge=0, le=2**53)]
"""Number of statements up to and including this one; 0 before the first."""
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 in lower-case hexadecimal."""
