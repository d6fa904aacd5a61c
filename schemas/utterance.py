"""What a pipeline sends: one JSON object per utterance."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    model_validator,
)
from pydantic.config import JsonDict

from schemas.contract import (
    AGENTS_MAX,
    OPERATIONS_MAX,
    REFERENCES_MAX,
    VARIABLES_MAX,
    Contract,
    Text,
    Timestamp,
    given,
)
from schemas.ids import (
    AgentId,
    ConversationId,
    RecordId,
    RoleName,
    TenantId,
    UtteranceId,
    VariableName,
)
from schemas.operations import Operation
from schemas.policy import Policy

Operations = Annotated[tuple[Operation, ...], Field(max_length=OPERATIONS_MAX)]
Audience = Annotated[tuple[AgentId, ...], Field(min_length=1, max_length=AGENTS_MAX)]


def _no_integer(number: object) -> object:
    """Keep an integer out of the float branch, which would round one just above the bound."""
    if isinstance(number, int):
        raise ValueError("a number lies within 2**53 of zero")
    return number


_Exact = Field(ge=-(2**53), le=2**53)
"""Beyond that every number is an integer that readers round, however it is written."""


MetadataValue = (
    Annotated[str, Field(max_length=4_096)]
    | bool
    | Annotated[int, _Exact]
    | Annotated[float, _Exact, BeforeValidator(_no_integer)]
    | None
)


class UtteranceKind(StrEnum):
    """Whether an utterance is said, proposed, or opens a conversation."""

    STATEMENT = "statement"
    CANDIDATE = "candidate"
    SETUP = "setup"


class CandidateClaim(Contract):
    """One claim of a draft, and the record or records it rests on.

    With neither `record` nor `records` the claim is not associated; with `records` it is grounded
    only if every one of them is.
    """

    text: Text = ""
    record: RecordId | None = None
    records: Annotated[tuple[RecordId, ...], Field(min_length=1, max_length=64)] | None = None

    model_config = ConfigDict(json_schema_extra={"not": given("record", "records")})

    @model_validator(mode="after")
    def _one_association(self) -> Self:
        if self.record is not None and self.records is not None:
            raise ValueError("give either record or records, not both")
        return self

    def associated(self) -> tuple[str, ...]:
        """The ids the claim rests on, in the order given, each once; empty if there are none."""
        if self.record is not None:
            return (self.record,)
        return tuple(dict.fromkeys(self.records or ()))


class Agent(Contract):
    """A participant that a setup declares."""

    id: AgentId
    role: RoleName = "user"


def _one_role_each(agents: tuple[Agent, ...]) -> tuple[Agent, ...]:
    """Refuse two roles for one agent, of which one would have to be ignored."""
    roles: dict[str, str] = {}
    for agent in agents:
        if roles.setdefault(agent.id, agent.role) != agent.role:
            raise ValueError(f"an agent has one role, and {agent.id!r} is declared with two")
    return agents


Agents = Annotated[tuple[Agent, ...], Field(max_length=AGENTS_MAX), AfterValidator(_one_role_each)]
Variables = Annotated[tuple[VariableName, ...], Field(max_length=VARIABLES_MAX)]
Observes = Annotated[dict[AgentId, Variables], Field(max_length=AGENTS_MAX)]


class SetupBody(Contract):
    """What a conversation starts from: who takes part and what each of them can see."""

    agents: Agents = ()
    variables: Variables = ()
    observes: Observes = Field(default_factory=dict, json_schema_extra={"default": {}})
    policy: Policy | None = None
    """The conversation's own; null leaves it with its tenant's."""


def _only_in(kind: UtteranceKind, *names: str) -> JsonDict:
    """The JSON Schema that ties fields to a kind; an utterance without one is a statement."""
    required: list[JsonValue] = [] if kind is UtteranceKind.STATEMENT else ["kind"]
    return {
        "if": {"anyOf": [given(name) for name in names]},
        "then": {"properties": {"kind": {"const": kind.value}}, "required": required},
    }


_FLAT = ("agents", "variables", "observes", "policy")
_FIELDS_FIT_THE_KIND: JsonDict = {
    "allOf": [
        _only_in(UtteranceKind.STATEMENT, "operations"),
        _only_in(UtteranceKind.CANDIDATE, "claims"),
        _only_in(UtteranceKind.SETUP, "setup", *_FLAT),
    ],
    "not": {"allOf": [given("setup"), {"anyOf": [given(name) for name in _FLAT]}]},
}


class Utterance(Contract):
    """One line of input: a statement, a candidate to check, or a setup.

    A setup may carry its fields beside the others or together under `setup`.
    """

    tenant_id: TenantId = "default"
    conversation_id: ConversationId
    utterance_id: UtteranceId
    speaker: AgentId
    role: RoleName = "user"
    text: Text = ""
    at: Timestamp
    kind: UtteranceKind = UtteranceKind.STATEMENT
    audience: Audience | None = None
    operations: Operations | None = None
    claims: Annotated[tuple[CandidateClaim, ...], Field(max_length=REFERENCES_MAX)] | None = None
    metadata: Annotated[
        dict[Annotated[str, Field(max_length=128)], MetadataValue], Field(max_length=64)
    ] = Field(default_factory=dict, json_schema_extra={"default": {}})  # sharing one copies it deep
    setup: SetupBody | None = None
    agents: Agents | None = None
    variables: Variables | None = None
    observes: Observes | None = None
    policy: Policy | None = None

    model_config = ConfigDict(json_schema_extra=_FIELDS_FIT_THE_KIND)

    @model_validator(mode="after")
    def _fields_fit_the_kind(self) -> Self:
        flat = (self.agents, self.variables, self.observes, self.policy)
        has_flat = any(field is not None for field in flat)
        if self.kind is not UtteranceKind.SETUP and (self.setup is not None or has_flat):
            raise ValueError("agents, variables, observes and policy belong to kind setup")
        if self.kind is not UtteranceKind.STATEMENT and self.operations is not None:
            raise ValueError("operations belong to kind statement")
        if self.kind is not UtteranceKind.CANDIDATE and self.claims is not None:
            raise ValueError("claims belong to kind candidate")
        if self.setup is not None and has_flat:
            raise ValueError("give the setup's fields either directly or under setup, not both")
        return self

    def setup_body(self) -> SetupBody:
        """The setup's fields, wherever they stood."""
        if self.setup is not None:
            return self.setup
        return SetupBody(
            agents=self.agents or (),
            variables=self.variables or (),
            observes=self.observes or {},
            policy=self.policy,
        )
