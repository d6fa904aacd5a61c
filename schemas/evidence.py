"""Evidence atoms: the dated values that an observation may bring for the evidence ledger."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from schemas.contract import REFERENCES_MAX, Contract
from schemas.ids import RecordId

AtomText = Annotated[str, Field(min_length=1, max_length=1_024)]


def _in_the_calendar(written: str) -> str:
    """Refuse what has the right shape but is no date, such as 30 February."""
    try:
        datetime.fromisoformat(written if "T" in written else (written + "-01-01")[:10])
    except ValueError as invalid:
        raise ValueError("there is no such date") from invalid
    return written


ValidTime = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2}(T([01][0-9]|2[0-3]):[0-9]{2}"
        r"(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))?)?)?$"
    ),
    AfterValidator(_in_the_calendar),
]
"""A year, month, day, or moment with a zone, in ISO 8601: a source often knows only the year."""


class Relation(StrEnum):
    """How a new atom stands to an active atom of its key."""

    SAME_STATE = "same_state"
    REFINES = "refines"
    SUPERSEDES = "supersedes"
    CONTRADICTS = "contradicts"
    UNRELATED = "unrelated"


class Atom(Contract):
    """One dated value of an entity's attribute."""

    entity: AtomText
    attribute: AtomText
    value: AtomText
    polarity: bool = True
    valid_from: ValidTime | None = None
    valid_to: ValidTime | None = None
    relation: Relation | None = None
    of: Annotated[tuple[RecordId, ...], Field(max_length=REFERENCES_MAX)] | None = None
