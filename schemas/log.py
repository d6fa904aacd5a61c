"""The operation log: one event per utterance, the only input of the reducer.

An event says what the Interpreter made of an utterance and where it came from. The reducer folds
these events and nothing else, so whatever must be reproducible stands here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from schemas.contract import (
    OPERATIONS_MAX,
    REFERENCES_MAX,
    Contract,
    Count,
    Digest,
    Reason,
    Sequence,
    Timestamp,
    Turn,
)
from schemas.evidence import Supersession
from schemas.ids import AgentId, ConversationId, RecordId, RoleName, TenantId, UtteranceId
from schemas.operations import Operation
from schemas.policy import Policy
from schemas.utterance import Audience, CandidateClaim, SetupBody

ANSWER_CHARS_MAX = 32_768
CALLS_MAX = 32


class RejectionCode(StrEnum):
    """Why an operation was refused; the first failing check names the code."""

    UNKNOWN_REFERENCE = "unknown_reference"
    DUPLICATE_RECORD = "duplicate_record"
    SELF_REFERENCE = "self_reference"
    TARGET_ABANDONED = "target_abandoned"
    TARGET_RESOLVED = "target_resolved"
    TARGET_NOT_IN_GOOD_STANDING = "target_not_in_good_standing"
    TARGET_ATTACKED = "target_attacked"
    EVIDENCE_NOT_IN_GOOD_STANDING = "evidence_not_in_good_standing"
    ALREADY_AWARE = "already_aware"
    INCONSISTENT_WITH_MODEL = "inconsistent_with_model"
    ALREADY_BELIEVED = "already_believed"
    NOT_EXPLANATORY = "not_explanatory"
    NOT_AUTHORISED = "not_authorised"
    BOUND_EXCEEDED = "bound_exceeded"
    INVALID_OPERATION = "invalid_operation"
    """A model wrote something that is no operation; the engine never sees it."""


class Rejection(Contract):
    """One refused operation: its place in the list as given, the code, and the ids involved."""

    index: Count
    code: RejectionCode
    reason: Reason
    records: Annotated[tuple[RecordId, ...], Field(max_length=REFERENCES_MAX)] = ()


class UtteranceRef(Contract):
    """The utterance: its id, the digest of its canonical content, its place in Kafka."""

    id: UtteranceId
    digest: Digest
    topic: Annotated[str, Field(max_length=249)] | None = None
    partition: Count | None = None
    offset: Count | None = None


class ModelCall(Contract):
    """One call of a model: which request, the answer as it came, why it ended, and what it cost.

    `request` is the SHA-256 of everything that shaped the answer. An answer that is too long to be
    kept is null.
    """

    request: Digest
    answer: Annotated[str, Field(max_length=ANSWER_CHARS_MAX)] | None = None
    refusal: Reason | None = None
    finish_reason: Annotated[str, Field(max_length=64)] | None = None
    tokens_in: Count = 0
    tokens_out: Count = 0
    milliseconds: Count = 0


class Interpretation(Contract):
    """Who turned the utterance into operations, with what, and at what cost.

    The costs are the sums over all calls; `calls` has the first `CALLS_MAX` of them. `rejections`
    are the operations that were left out, by their place in what the model gave.
    """

    interpreter: Annotated[str, Field(min_length=1, max_length=64)]
    model: Annotated[str, Field(max_length=256)] | None = None
    prompt_id: Annotated[str, Field(max_length=128)] | None = None
    prompt_hash: Digest | None = None
    parameters: Annotated[
        dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=1_024)]],
        Field(max_length=32),
    ] = {}
    attempts: Count = 0
    tokens_in: Count = 0
    tokens_out: Count = 0
    milliseconds: Count = 0
    rejections: Annotated[tuple[Rejection, ...], Field(max_length=OPERATIONS_MAX)] = ()
    calls: Annotated[tuple[ModelCall, ...], Field(max_length=CALLS_MAX)] = ()


class _LogEvent(Contract):
    """What every event of the log carries.

    `policy` is the tenant's, there where it differs from the one before: it holds from this event
    on, unless the setup gave the conversation one of its own.
    """

    tenant_id: TenantId
    conversation_id: ConversationId
    sequence: Sequence
    rules_version: Count
    utterance: UtteranceRef
    speaker: AgentId
    role: RoleName
    at: Timestamp
    audience: Audience | None = None
    policy: Policy | None = None
    provenance: Interpretation


class OperationsAppended(_LogEvent):
    """A statement and the operations it makes, in the order given: one turn.

    `supersession` is the tenant's policy at that time; none given means the default one.
    """

    type: Literal["standfast.operations.v1"]
    turn: Turn
    operations: Annotated[tuple[Operation, ...], Field(max_length=OPERATIONS_MAX)]
    fills_turn: Turn | None = None
    supersession: Supersession | None = None


class InterpretationFailed(_LogEvent):
    """A statement that could not be interpreted: it takes a turn and leaves a gap in coverage."""

    type: Literal["standfast.interpretation_failed.v1"]
    turn: Turn
    reason: Reason


class CandidateAppended(_LogEvent):
    """A draft continuation to be checked; it commits nobody to anything."""

    type: Literal["standfast.candidate.v1"]
    claims: Annotated[tuple[CandidateClaim, ...], Field(max_length=REFERENCES_MAX)] | None = None


class ConversationSetUp(_LogEvent):
    """What the conversation starts from; only the first event of a conversation may be one."""

    type: Literal["standfast.setup.v1"]
    setup: SetupBody


class ConversationErased(_LogEvent):
    """The conversation's key was destroyed; nothing follows, and nothing was before.

    It is folded into an empty conversation whatever its sequence and the sequences before it: who
    can open those and who cannot come to the same state.
    """

    type: Literal["standfast.conversation_erased.v1"]


LogEvent = Annotated[
    OperationsAppended
    | InterpretationFailed
    | CandidateAppended
    | ConversationSetUp
    | ConversationErased,
    Field(discriminator="type"),
]
