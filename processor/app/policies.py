"""Which authority policy each tenant has.

The configuration is a file with one JSON object per line, like that of the tokens; it is read when
a process starts. It decides nothing by itself: a policy counts from the event on that brings it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from processor.app.errors import SettingsError
from processor.engine.conversation import Conversation
from processor.engine.rules_version import RULES_V3
from schemas.contract import Contract
from schemas.ids import TenantId
from schemas.policy import DEFAULT_POLICY, Policy
from schemas.wire import WireError, decode_contract


class PolicyLine(Contract):
    """One line of the file; `tenant` null stands for every tenant that has no line of its own."""

    tenant: TenantId | None
    policy: Policy


@final
@dataclass(frozen=True)
class Policies:
    """The policies of the tenants; `others` is that of those without one."""

    of_tenants: Mapping[str, Policy] = field(default_factory=dict)
    others: Policy = DEFAULT_POLICY

    def to_bring(self, conversation: Conversation, rules_version: int) -> Policy | None:
        """The policy that the next event of the conversation must bring, if it must bring one."""
        state = conversation.state
        if rules_version < RULES_V3 or state.own_policy is not None:
            return None
        wanted = self.of_tenants.get(conversation.tenant_id, self.others)
        return None if wanted == (state.tenant_policy or DEFAULT_POLICY) else wanted


NO_POLICIES = Policies()
"""The default policy for everybody."""


def read_policies(path: Path | None) -> Policies:
    """The policies of a file; without one, the default for everybody. Raises SettingsError."""
    if path is None:
        return NO_POLICIES
    policies: dict[str | None, Policy] = {}
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            read = decode_contract(PolicyLine, line)
        except WireError as invalid:
            raise SettingsError(f"{path}:{number}: {invalid}") from invalid
        if read.tenant in policies:
            raise SettingsError(f"{path}:{number}: tenant: it has a policy already")
        policies[read.tenant] = read.policy
    others = policies.pop(None, DEFAULT_POLICY)
    return Policies({tenant: each for tenant, each in policies.items() if tenant}, others)


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error
