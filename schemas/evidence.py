"""Evidence atoms: the dated values that an observation may bring for the evidence ledger.

Also what a ledger may be asked, what a memory may keep, and how it may be shown.
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from schemas.contract import REFERENCES_MAX, Contract
from schemas.ids import RecordId

AtomText = Annotated[str, Field(min_length=1, max_length=1_024)]


_WRITTEN = (
    r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2}(T([01][0-9]|2[0-3]):[0-9]{2}"
    r"(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))?)?)?$"
)
_MATCHES = re.compile(_WRITTEN).fullmatch


def _in_the_calendar(written: str) -> str:
    """Refuse other shapes, and what has the right one but is no date, such as 30 February."""
    if _MATCHES(written) is None:
        raise ValueError("this is no year, month, day, or moment with a zone")
    try:
        datetime.fromisoformat(written if "T" in written else (written + "-01-01")[:10])
    except ValueError as invalid:
        raise ValueError("there is no such date") from invalid
    return written


ValidTime = Annotated[
    str,
    Field(json_schema_extra={"pattern": _WRITTEN}),
    AfterValidator(_in_the_calendar),
]
"""A year, month, day, or moment with a zone, in ISO 8601: a source often knows only the year."""


def is_valid_time(written: str) -> bool:
    """Whether this is a year, month, day, or moment with a zone."""
    try:
        _VALID_TIME.validate_python(written)
    except ValidationError:
        return False
    return True


_VALID_TIME: TypeAdapter[str] = TypeAdapter(ValidTime)


class Relation(StrEnum):
    """How a new atom stands to an active atom of its key."""

    SAME_STATE = "same_state"
    REFINES = "refines"
    SUPERSEDES = "supersedes"
    CONTRADICTS = "contradicts"
    UNRELATED = "unrelated"


class Supersession(StrEnum):
    """What it takes that a value replaces another, and the older record is revised by the newer.

    `off`: the ledger keeps its account and the dependency map is left alone. `explicit`: the
    relation must be said with the atom. `same_key_same_source`: a source that gives another value
    for the same key replaces its own as well.
    """

    OFF = "off"
    EXPLICIT = "explicit"
    SAME_KEY_SAME_SOURCE = "same_key_same_source"


class MemoryClass(StrEnum):
    """What is kept of a log of atoms, from the words themselves to the typed ledger."""

    DIRECT_CONTEXT = "direct_context"
    RAG_TOP_K = "rag_top_k"
    LATEST_ONLY = "latest_only"
    TIMESTAMP_RERANK = "timestamp_rerank"
    METADATA_ONLY = "metadata_only"
    GRAPHRAG_LITE = "graphrag_lite"
    GRAPHRAG_ABSTAIN = "graphrag_abstain"
    COARSE_DISCARD = "coarse_discard"
    COARSE_RETAIN = "coarse_retain"
    LEDGER = "ledger"
    RENDER_MATCHED = "render_matched"


class QueryClass(StrEnum):
    """What a memory is asked about a key.

    The value in force; the one before it; whether that change refined or replaced; whether it is in
    conflict, and by which relation; the value in force after a turn or at a time.
    """

    SNAPSHOT = "snapshot"
    PROVENANCE = "provenance"
    CHANGE_TYPE = "change_type"
    STATUS = "status"
    CONFLICT_RELATION = "conflict_relation"
    AS_OF = "as_of"


AUTO: Literal["auto"] = "auto"
MemorySetting = MemoryClass | Literal["auto"]
"""The memory class of a tenant, or `auto`: the least that its queries need."""

WEIGHT_MAX = 1e12
Weight = Annotated[float, Field(ge=0, le=WEIGHT_MAX)]
"""How often something is asked, in any unit: a count, or a share."""


class RenderFormat(StrEnum):
    """How a memory is written out for a reader."""

    FLAT = "flat"
    VERBOSE = "verbose"
    COMPACT = "compact"
    MINIMAL = "minimal"
    JSON = "json"


class Atom(Contract):
    """One dated value of an entity's attribute, or of one facet of it (a platform, a version)."""

    entity: AtomText
    attribute: AtomText
    facet: AtomText | None = None
    value: AtomText
    polarity: bool = True
    valid_from: ValidTime | None = None
    valid_to: ValidTime | None = None
    relation: Relation | None = None
    of: Annotated[tuple[RecordId, ...], Field(max_length=REFERENCES_MAX)] | None = None
