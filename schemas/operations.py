"""The eight typed operations, discriminated by `op`.

Where an id may stand, an inline object introduces a record. The models say what a well-formed
operation looks like; whether it may be applied is the engine's business.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from schemas.contract import AGENTS_MAX, REFERENCES_MAX, Claim, Contract, Reason, Text, given
from schemas.evidence import Atom
from schemas.formula import FormulaInput
from schemas.ids import AgentId, RecordId, VariableName

INLINE_DEPTH_MAX = 16
"""How deep inline records may cite inline records; JSON readers stop at some 200 levels."""


class InlineRecord(Contract):
    """A record that is introduced where it is first cited."""

    record: RecordId
    claim: Claim
    premises: References = ()
    formula: FormulaInput | None = None
    atoms: Annotated[tuple[Atom, ...], Field(max_length=64)] = ()

    @model_validator(mode="after")
    def _nesting_is_bounded(self) -> Self:
        depth = 0
        level: list[InlineRecord] = [self]
        while level:
            depth += 1
            level = [p for record in level for p in record.premises if isinstance(p, InlineRecord)]
        if depth > INLINE_DEPTH_MAX:
            raise ValueError(f"inline records nest at most {INLINE_DEPTH_MAX} deep")
        return self


Reference = RecordId | InlineRecord
References = Annotated[tuple[Reference, ...], Field(max_length=REFERENCES_MAX)]
RecordIds = Annotated[tuple[RecordId, ...], Field(max_length=REFERENCES_MAX)]


class Dissent(Contract):
    """An agent that does not share a resolution, and why."""

    agent: AgentId
    reason: Reason


class Observe(Contract):
    """Commit to something seen: a new observation resting on its premises."""

    op: Literal["observe"]
    record: RecordId
    claim: Claim
    premises: References = ()
    formula: FormulaInput | None = None
    atoms: Annotated[tuple[Atom, ...], Field(max_length=64)] = ()
    speaker: AgentId | None = None


class Hypothesize(Contract):
    """Propose an explanation: a new hypothesis, and what it explains."""

    op: Literal["hypothesize"]
    record: RecordId
    claim: Claim
    premises: References = ()
    explains: RecordIds = ()
    formula: FormulaInput | None = None
    speaker: AgentId | None = None


class Support(Contract):
    """Add corroborating evidence to a record that still counts."""

    op: Literal["support"]
    target: RecordId
    evidence: Reference
    specific: bool = False
    speaker: AgentId | None = None


class Undermine(Contract):
    """Attack a record without giving it up: it is weakened."""

    op: Literal["undermine"]
    target: RecordId
    evidence: Reference
    contrast: bool = False
    speaker: AgentId | None = None


class Revise(Contract):
    """Give a record up because of another: it is abandoned for good."""

    op: Literal["revise"]
    target: RecordId
    by: Reference
    negates: bool = False
    speaker: AgentId | None = None


class ExpandAwareness(Contract):
    """Bring a proposition to mind, optionally with a record that introduces it."""

    op: Literal["expand_awareness"]
    proposition: VariableName
    agents: Annotated[tuple[AgentId, ...], Field(min_length=1, max_length=AGENTS_MAX)] | None = None
    record: RecordId | None = None
    claim: Claim | None = None
    reclassifies: RecordId | None = None
    speaker: AgentId | None = None

    model_config = ConfigDict(json_schema_extra={"if": given("claim"), "then": given("record")})

    @model_validator(mode="after")
    def _claim_belongs_to_a_record(self) -> Self:
        if self.claim is not None and self.record is None:
            raise ValueError("a claim needs the record that carries it")
        return self


class Resolve(Contract):
    """Settle on a record, by consent or by authority, with what it subsumes and who dissents."""

    op: Literal["resolve"]
    target: RecordId
    mode: Literal["consensual", "authoritative"]
    subsumes: RecordIds = ()
    premises: References = ()
    answers: RecordIds = ()
    decision: InlineRecord | None = None
    dissent: Annotated[tuple[Dissent, ...], Field(max_length=AGENTS_MAX)] = ()
    speaker: AgentId | None = None


class Question(Contract):
    """Open a problem."""

    op: Literal["question"]
    question: RecordId
    text: Text = ""
    about: RecordIds = ()
    speaker: AgentId | None = None


Operation = Annotated[
    Observe | Hypothesize | Support | Undermine | Revise | ExpandAwareness | Resolve | Question,
    Field(discriminator="op"),
]

OPERATION_ORDER = (
    "expand_awareness",
    "observe",
    "hypothesize",
    "support",
    "undermine",
    "revise",
    "resolve",
    "question",
)
"""The order in which the operations of one utterance are applied."""

InlineRecord.model_rebuild()
for _operation in (Observe, Hypothesize, Support, Undermine, Revise, Resolve):
    _operation.model_rebuild()
