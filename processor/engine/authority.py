"""Who may do what: the policy in force, asked for one statement (`not_authorised`).

What counts is the role in which the utterance was said. An operation that names another speaker
has the authority of who says it, no more and no less, and what it introduces is introduced in that
role.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, assert_never, final

from processor.engine.errors import Refusal
from processor.engine.record import Record
from processor.engine.rules_version import RULES_V3
from processor.engine.state import State
from schemas.log import RejectionCode
from schemas.operations import (
    ExpandAwareness,
    Hypothesize,
    Observe,
    Operation,
    Question,
    Resolve,
    Revise,
    Support,
    Undermine,
)
from schemas.policy import DEFAULT_POLICY, Act, Policy, Prohibition


@final
class Authority(NamedTuple):
    """What the role of a statement may do under a policy.

    `role` None is a statement of before there were policies: it may do everything, and what it
    introduces has no role that a policy could name.
    """

    role: str | None = None
    policy: str = ""
    forbidden: tuple[Prohibition, ...] = ()
    may_decide: bool = True

    def refusal(self, state: State, operation: Operation) -> Refusal | None:
        """Why the policy refuses an operation whose references are known to be good, or None."""
        if not self.forbidden and self.may_decide:
            return None
        decides = isinstance(operation, Resolve) and operation.mode == "authoritative"
        if decides and not self.may_decide:
            return self._refusal("decide by authority", ())
        for act, id_ in _acts(operation):
            record = state.records[id_]
            if self.forbids(act, record):
                what = f"{act} a record of kind {record.kind} introduced in the role {record.role}"
                return self._refusal(what, (id_,))
        return None

    def forbids(self, act: Act, record: Record) -> bool:
        """Whether the policy keeps the role from doing this to the record."""
        return any(
            act in each.acts
            and (each.kinds is None or record.kind in each.kinds)
            and (each.introduced_by is None or record.role in each.introduced_by)
            for each in self.forbidden
        )

    def _refusal(self, what: str, records: tuple[str, ...]) -> Refusal:
        reason = f"the policy {self.policy} does not let the role {self.role} {what}"
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
    policy = state.own_policy or brought or policy_in_force(state)
    return Authority(
        role,
        policy.version,
        tuple(each for each in policy.forbidden if each.roles is None or role in each.roles),
        policy.deciders is None or role in policy.deciders,
    )


def _acts(operation: Operation) -> Iterator[tuple[Act, str]]:
    """What the operation does to which records that are there, in the order of its fields."""
    match operation:
        case Support():
            yield Act.SUPPORT, operation.target
        case Undermine():
            yield Act.UNDERMINE, operation.target
        case Revise():
            yield Act.REVISE, operation.target
        case Resolve():
            yield Act.RESOLVE, operation.target
            if operation.decision is None and operation.premises:
                yield Act.REBASE, operation.target
            for subsumed in operation.subsumes:
                yield Act.REBASE, subsumed
        case ExpandAwareness():
            if operation.reclassifies is not None:
                yield Act.RECLASSIFY, operation.reclassifies
        case Observe() | Hypothesize() | Question():
            return
        case _:
            assert_never(operation)
