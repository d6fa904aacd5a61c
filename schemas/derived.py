"""What the reducer emits: turns, verdicts, retraction impacts, alerts, context updates.

Every derived event carries the conversation, the turn, the sequence of the log event it came from,
and an id that is a hash of those, so that emitting it again is harmless.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from schemas.contract import Contract, Count, Digest, Reason, Sequence, Text, Turn
from schemas.ids import AgentId, ConversationId, RecordId, TenantId, UtteranceId
from schemas.log import Rejection

FAILURES_MAX = 10_000
"""How many failing records the verdicts of one log event name together, an equal share each."""
SUPPORT_MAX = 20_000
"""How many ids of support the verdicts of one candidate tell together, the first claims first: with
the longest ids a verdict that has them all fits its topic."""
PATH_IDS_MAX = 256
"""A longer support path is given by its two ends."""
MISSING_TURNS_MAX = 100
"""How many uninterpreted turns a verdict names: each repeats them, so all would be quadratic."""

Ids = tuple[RecordId, ...]
"""Ids in ascending order; bounded by the conversation, not by a constant."""


class Standing(StrEnum):
    """The labels of a record; active and resolved are good standing."""

    ACTIVE = "active"
    WEAKENED = "weakened"
    ABANDONED = "abandoned"
    RESOLVED = "resolved"


FallenStanding = Literal[Standing.WEAKENED, Standing.ABANDONED]


class Outcome(StrEnum):
    """The closed set of answers to a check."""

    GROUNDED = "grounded"
    UNGROUNDED = "ungrounded"
    ABSTAIN = "abstain"
    PENDING = "pending"
    UNVERIFIED = "unverified"
    NO_CLAIMS = "no_claims"


class Grade(StrEnum):
    """Beside the strict answer: did only corroboration fall away?"""

    GROUNDED = "grounded"
    CORROBORATION_LOST = "corroboration_lost"
    UNGROUNDED = "ungrounded"


class VerdictReason(StrEnum):
    """Why a verdict is not simply grounded."""

    NO_RECORD = "no_record"
    WITHDRAWN_SUPPORT = "withdrawn_support"
    DISPUTED = "disputed"
    NO_CLAIMS_GIVEN = "no_claims_given"
    NOT_FOLDED_YET = "not_folded_yet"


class NoteCode(StrEnum):
    """What a turn did otherwise than its operations asked."""

    ANNOUNCEMENT_WITHHELD = "announcement_withheld"
    NEGATION_SKIPPED = "negation_skipped"
    BOUND_EXCEEDED = "bound_exceeded"
    LATE_ATOM = "late_atom"


class Severity(StrEnum):
    """How loud an alert is: losing corroboration alone is the lower one."""

    WARNING = "warning"
    CRITICAL = "critical"


class Note(Contract):
    """One remark about a turn, with the records it concerns."""

    code: NoteCode
    text: Reason
    records: Ids = ()


class Cause(Contract):
    """The operation that changed a standing, the record it acted through, and who said it."""

    op: Annotated[str, Field(max_length=32)]
    by: RecordId | None = None
    speaker: AgentId


class Failure(Contract):
    """A record that a check ran into and that no longer stands.

    `path` leads to it from the claim's record; of a long one it holds the two ends, and
    `path_omitted` counts the ids between the halves.
    """

    record: RecordId
    standing: Standing
    since_turn: Turn
    cause: Cause
    path: Annotated[tuple[RecordId, ...], Field(max_length=PATH_IDS_MAX)]
    path_omitted: Count = 0


class Coverage(Contract):
    """Whether every statement so far was interpreted, and which turns were not.

    `missing_turns` are the newest of them, ascending; `missing_count` counts them all.
    """

    complete: bool
    missing_turns: Annotated[tuple[Turn, ...], Field(max_length=MISSING_TURNS_MAX)] = ()
    missing_count: Count = 0


class CandidateRef(Contract):
    """The claim a verdict is about; `claim_index` is null for a candidate without claims."""

    utterance_id: UtteranceId
    claim_index: Count | None
    text: Text = ""
    records: tuple[RecordId, ...] = ()


class _Derived(Contract):
    """What every derived event carries."""

    TYPE: ClassVar[str]

    tenant_id: TenantId
    conversation_id: ConversationId
    turn: Turn
    sequence: Sequence
    event_id: Digest


class TurnEvent(_Derived):
    """What one statement did to the dependency map."""

    TYPE: ClassVar[str] = "standfast.turn.v1"

    utterance_id: UtteranceId
    applied: tuple[Count, ...]
    rejections: tuple[Rejection, ...]
    ungrounded: Ids
    failed: Reason | None
    notes: tuple[Note, ...]
    digest: Digest
    state_digest: Digest


class VerdictEvent(_Derived):
    """The answer to a check: a claim of a candidate, or a decision whose grounding changed.

    `failures` are the nearest failing records, by id; all of them if `failures_complete`. `support`
    is the whole closure if `support_complete`, else its first ids.
    """

    TYPE: ClassVar[str] = "standfast.verdict.v1"

    candidate: CandidateRef | None
    record: RecordId | None = None
    outcome: Outcome
    grade: Grade | None
    support: Ids
    support_complete: bool = True
    failures: Annotated[tuple[Failure, ...], Field(max_length=FAILURES_MAX)]
    failures_complete: bool = True
    reason: VerdictReason | None
    disputed: Ids = ()
    coverage: Coverage
    digest: Digest


class RetractionImpact(_Derived):
    """A record left good standing: what rested on it; all of that if `complete`."""

    TYPE: ClassVar[str] = "standfast.retraction_impact.v1"

    withdrawn: RecordId
    standing: FallenStanding
    cause: Annotated[str, Field(max_length=32)]
    by: RecordId
    direct: Ids
    transitive: Ids
    in_good_standing: Ids
    newly_ungrounded: Ids
    decisions: Ids
    complete: bool = True
    message: Text


class UngroundedAlert(_Derived):
    """A decision or a candidate claim that does not rest on standing ground."""

    TYPE: ClassVar[str] = "standfast.ungrounded_alert.v1"

    record: RecordId | None
    candidate: CandidateRef | None
    severity: Severity
    reason: VerdictReason
    message: Text


class ContextUpdate(_Derived):
    """The renderer's summary of what changed in a turn."""

    TYPE: ClassVar[str] = "standfast.context_update.v1"

    text: Text


DerivedEvent = TurnEvent | VerdictEvent | RetractionImpact | UngroundedAlert | ContextUpdate
