"""What holds for each tenant: its authority policy, what supersedes a value, its memory class.

The configuration is a file with one JSON object per line, like that of the tokens; it is read when
a process starts. What decides a fold counts in the log events that bring it. The memory class
decides no fold and stands in no log: it says from how much of the log questions are answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self, final

from pydantic import Field, model_validator

from processor.app.errors import SettingsError
from processor.engine.conversation import Conversation
from processor.engine.rules_version import RULES_V2, RULES_V3
from processor.evidence.retention import select_retention
from schemas.contract import Contract
from schemas.evidence import AUTO, MemoryClass, MemorySetting, QueryClass, Supersession, Weight
from schemas.ids import TenantId
from schemas.log import ConversationSetUp, LogEvent, OperationsAppended
from schemas.policy import DEFAULT_POLICY, Policy
from schemas.wire import WireError, decode_contract


class Terms(Contract):
    """What holds for one tenant; what is left out is the default.

    `queries` says how often each query class is asked, which is what `auto` goes by.
    """

    policy: Policy = DEFAULT_POLICY
    supersession: Supersession = Supersession.SAME_KEY_SAME_SOURCE
    memory: MemorySetting = MemoryClass.LEDGER
    queries: dict[QueryClass, Weight] = Field(default_factory=dict)
    keep_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    """How long after it was last heard of `erase --due` lets a conversation be; null: for ever."""

    @model_validator(mode="after")
    def _auto_can_tell(self) -> Self:
        try:
            self.memory_class()
        except ValueError as nothing:
            raise ValueError(f"queries: memory {AUTO} goes by them, and {nothing}") from nothing
        return self

    def memory_class(self) -> MemoryClass:
        """The class that answers this tenant's questions."""
        return select_retention(self.queries) if self.memory == AUTO else MemoryClass(self.memory)


DEFAULT_TERMS = Terms()


class TermsLine(Terms):
    """One line of the file; `tenant` null stands for every tenant that has no line of its own."""

    tenant: TenantId | None


@final
@dataclass(frozen=True)
class Tenants:
    """The terms of the tenants; `others` are those of tenants without any."""

    terms: Mapping[str, Terms] = field(default_factory=dict)
    others: Terms = DEFAULT_TERMS

    def memory_class(self, tenant_id: str) -> MemoryClass:
        """The memory class that answers questions about a tenant's conversations."""
        return self._terms_of(tenant_id).memory_class()

    def stamped(self, conversation: Conversation, event: LogEvent) -> LogEvent:
        """The next event of the conversation, with all that it must bring of its tenant's terms."""
        terms = self._terms_of(event.tenant_id)
        brings: dict[str, Any] = {}
        if _must_bring_policy(conversation, event, terms.policy):
            brings["policy"] = terms.policy
        if _must_bring_supersession(event, terms.supersession):
            brings["supersession"] = terms.supersession
        return event.model_copy(update=brings) if brings else event

    def _terms_of(self, tenant_id: str) -> Terms:
        return self.terms.get(tenant_id, self.others)


PLAIN = Tenants()
"""The defaults for everybody."""


def _must_bring_policy(conversation: Conversation, event: LogEvent, wanted: Policy) -> bool:
    """Whether another policy than the tenant's is in force, and none of the conversation's own."""
    state = conversation.state
    has_its_own = state.own_policy is not None or (
        isinstance(event, ConversationSetUp) and event.setup.policy is not None
    )
    in_force = state.tenant_policy or DEFAULT_POLICY
    is_another = wanted is not in_force and wanted != in_force  # most are the same object
    return event.rules_version >= RULES_V3 and not has_its_own and is_another


def _must_bring_supersession(event: LogEvent, wanted: Supersession) -> bool:
    return (
        isinstance(event, OperationsAppended)
        and event.rules_version >= RULES_V2
        and wanted is not Supersession.SAME_KEY_SAME_SOURCE
    )


def read_tenants(path: Path | None) -> Tenants:
    """The terms in a file; without one, the defaults for everybody. Raises SettingsError."""
    if path is None:
        return PLAIN
    terms: dict[str | None, Terms] = {}
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            read = decode_contract(TermsLine, line)
        except WireError as invalid:
            raise SettingsError(f"{path}:{number}: {invalid}") from invalid
        if read.tenant in terms:
            raise SettingsError(f"{path}:{number}: tenant: it has a line already")
        terms[read.tenant] = read
    others = terms.pop(None, DEFAULT_TERMS)
    return Tenants({tenant: each for tenant, each in terms.items() if tenant}, others)


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error
