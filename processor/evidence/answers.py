"""What a memory can be asked, and what it can answer."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, final

from processor.evidence.key import Key
from schemas.evidence import QueryClass, Relation


class Found(StrEnum):
    """What kind of answer it is."""

    VALUE = "value"
    NOTHING = "nothing"
    ABSTAIN = "abstain"
    NOT_KEPT = "not_kept"


@final
class Side(NamedTuple):
    """One side of a disagreement: a value and the records behind it."""

    value: str
    records: tuple[str, ...]


@final
class Answer(NamedTuple):
    """The answer: for `value` the value, its records and when it is in force.

    `sides` are those of an open conflict, by which `relation`.
    """

    found: Found
    value: str | None = None
    records: tuple[str, ...] = ()
    valid_from: str | None = None
    valid_to: str | None = None
    sides: tuple[Side, ...] = ()
    relation: Relation | None = None


NOTHING = Answer(Found.NOTHING)
NOT_KEPT = Answer(Found.NOT_KEPT)


@final
class Query(NamedTuple):
    """What is asked of a key; `as_of` takes either the turn or the time."""

    key: Key
    query_class: QueryClass = QueryClass.SNAPSHOT
    turn: int | None = None
    at: str | None = None
