"""Evidence atoms: the dated values that an observation may bring for the evidence ledger."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from schemas.contract import REFERENCES_MAX, Contract
from schemas.ids import RecordId

AtomText = Annotated[str, Field(min_length=1, max_length=1_024)]
ValidTime = Annotated[
    str,
    Field(
        pattern=r"^\d{4}(-\d{2}(-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2}))?)?)?$"
    ),
]
"""A year, month, day, or moment with a zone, in ISO 8601: sources often know no more than a year."""


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
