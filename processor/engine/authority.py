"""Who may do what: the policy in force, asked for one statement (`not_authorised`).

What counts is the role in which the utterance was said. An operation that names another speaker
has the authority of who says it, no more and no less, and what it introduces is introduced in that
role.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, assert_never, final

from processor.engine.errors import Refusal
from processor.engine.record import Record
from processor.engine.rules_version import RULES_V3
from processor.engine.state import State
from schemas.log import RejectionCode
from schemas.operations import (
    Operation,
)
from schemas.policy import DEFAULT_POLICY, Act, Policy

_OPEN = Policy(version="open")
"""Forbids nothing."""


@final
class Authority(NamedTuple):
    """What the role of a statement may do under a policy.

    `role` None is a statement of before there were policies: it may do everything, and what it
    introduces has no role that a policy could name.
    """

    role: str | None = None
    policy: Policy = _OPEN

    def refusal(self, state: State, operation: Operation) -> Refusal | None:
        """Why the policy refuses an operation whose references are known to be good, or None."""
        if operation.op == "resolve" and operation.mode == "authoritative":
            deciders = self.policy.deciders
            if deciders is not None and self.role not in deciders:
                return self._refusal("decide by authority", ())
        for act, id_ in _acts(operation):
            record = state.records[id_]
            if self.forbids(act, record):
                what = f"{act} a record of kind {record.kind} introduced in the role {record.role}"
                return self._refusal(what, (id_,))
        return None

    def forbids(self, act: Act, record: Record) -> bool:
        """Whether the policy keeps the role from doing this to the record."""
        for each in self.policy.forbidden:
            if (
                act in each.acts
                and (each.roles is None or self.role in each.roles)
                and (each.kinds is None or record.kind in each.kinds)
                and (each.introduced_by is None or record.role in each.introduced_by)
            ):
                return True
        return False

    def _refusal(self, what: str, records: tuple[str, ...]) -> Refusal:
        reason = f"the policy {self.policy.version} does not let the role {self.role} {what}"
        return Refusal(RejectionCode.NOT_AUTHORISED, reason, records)


UNRESTRICTED = Authority()
"""The authority of every statement under rules without policies."""


def policy_in_force(state: State) -> Policy:
    """The conversation's own policy, else its tenant's, else the default one."""
    return state.own_policy or state.tenant_policy or DEFAULT_POLICY


def authority(state: State, rules_version: int, role: str, brought: Policy | None) -> Authority:
    """The authority of a statement in this role; `brought` is the policy that its event brings."""
    if rules_version < RULES_V3:
        return UNRESTRICTED
    return Authority(role, state.own_policy or brought or policy_in_force(state))


def _acts(operation: Operation) -> Sequence[tuple[Act, str]]:
    """What the operation does to which records that are there, in the order of its fields."""
    match operation.op:
        case "observe" | "hypothesize" | "question":
            return ()
        case "support":
            return ((Act.SUPPORT, operation.target),)
        case "revise":
            return ((Act.REVISE, operation.target),)
        case "undermine":
            return ((Act.UNDERMINE, operation.target),)
        case "resolve":
            rebased = (
                [operation.target] if operation.decision is None and operation.premises else []
            )
            rebases = [(Act.REBASE, id_) for id_ in (*rebased, *operation.subsumes)]
            return ((Act.RESOLVE, operation.target), *rebases)
        case "expand_awareness":
            reclassified = operation.reclassifies
            return () if reclassified is None else ((Act.RECLASSIFY, reclassified),)
        case _:
            assert_never(operation)
