"""The preconditions of the eight operations: everything that can refuse an operation lives here.

A check changes nothing. The first failing check names the code; the order is the target, self
reference, the target's standing, the cited and introduced ids from left to right, the evidence's
standing, authority (`authority.py`), awareness, and last the plausibility model
(`model_conditions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from processor.engine.errors import Refusal
from processor.engine.record import Audience, Happening, Record
from processor.engine.state import State
from schemas.derived import Standing
from schemas.log import RejectionCode
from schemas.operations import (
    ExpandAwareness,
    Hypothesize,
    InlineRecord,
    Observe,
    Operation,
    Question,
    Reference,
    Resolve,
    Revise,
    Support,
    Undermine,
)

Introduced = dict[str, bool]
"""Ids that the operation under check introduces; True once they may be cited."""


def structural_refusal(state: State, operation: Operation) -> Refusal | None:
    """Why the dependency map refuses the operation, or None."""
    match operation.op:
        case "observe":
            return _check_observe(state, operation)
        case "hypothesize":
            return _check_hypothesize(state, operation)
        case "support":
            return _check_support(state, operation)
        case "undermine":
            return _check_undermine(state, operation)
        case "revise":
            return _check_revise(state, operation)
        case "expand_awareness":
            return _check_expand_awareness(state, operation)
        case "resolve":
            return _check_resolve(state, operation)
        case "question":
            return _check_question(state, operation)
        case _:
            assert_never(operation)


def awareness_refusal(
    state: State, operation: ExpandAwareness, hearing: Audience
) -> Refusal | None:
    """Why nobody would become aware of anything, or None. `hearing` is the turn's audience."""
    if _someone_is_unaware(state, operation, hearing):
        return None
    return Refusal(
        RejectionCode.ALREADY_AWARE,
        f"every addressed agent who hears this is aware of {operation.proposition!r} already",
        (operation.proposition,),
    )


def _check_observe(state: State, operation: Observe) -> Refusal | None:
    if state.is_taken(operation.record):
        return _duplicate(operation.record)
    if not operation.premises:
        return None
    return _check_references(state, operation.premises, {operation.record: False})


def _check_hypothesize(state: State, operation: Hypothesize) -> Refusal | None:
    if state.is_taken(operation.record):
        return _duplicate(operation.record)
    if not operation.premises and not operation.explains:
        return None
    introduced: Introduced = {operation.record: False}
    return _check_references(state, operation.premises, introduced) or _check_problems(
        state, operation.explains, introduced
    )


def _check_support(state: State, operation: Support) -> Refusal | None:
    target = state.records.get(operation.target)
    if target is None:
        return _unknown(operation.target)
    if _id_of(operation.evidence) == target.id:
        return _self_reference(target.id, "its own evidence")
    if target.standing is Standing.ABANDONED:
        return _target_standing(RejectionCode.TARGET_ABANDONED, target)
    return _check_references(state, (operation.evidence,), {}) or _check_evidence_stands(
        state, operation.evidence
    )


def _check_undermine(state: State, operation: Undermine) -> Refusal | None:
    target = state.records.get(operation.target)
    if target is None:
        return _unknown(operation.target)
    if _id_of(operation.evidence) == target.id:
        return _self_reference(target.id, "its own attacker")
    if target.standing is Standing.ABANDONED:
        return _target_standing(RejectionCode.TARGET_ABANDONED, target)
    if target.standing is Standing.RESOLVED:
        return _target_standing(RejectionCode.TARGET_RESOLVED, target)
    return _check_references(state, (operation.evidence,), {})


def _check_revise(state: State, operation: Revise) -> Refusal | None:
    target = state.records.get(operation.target)
    if target is None:
        return _unknown(operation.target)
    if _id_of(operation.by) == target.id:
        return _self_reference(target.id, "its own attacker")
    return _check_references(state, (operation.by,), {})


def _check_expand_awareness(state: State, operation: ExpandAwareness) -> Refusal | None:
    if operation.record is not None and state.is_taken(operation.record):
        return _duplicate(operation.record)
    if operation.reclassifies is not None and operation.reclassifies not in state.records:
        return _unknown(operation.reclassifies)
    return None


def _check_resolve(state: State, operation: Resolve) -> Refusal | None:
    target = state.records.get(operation.target)
    if target is None:
        return _unknown(operation.target)
    if target.id in operation.subsumes:
        return _self_reference(target.id, "a record it subsumes")
    if operation.decision is None and target.id in map(_id_of, operation.premises):
        return _self_reference(target.id, "a premise of its own resolution")
    if not target.stands:
        return _target_standing(RejectionCode.TARGET_NOT_IN_GOOD_STANDING, target)
    if target.happened(Happening.ATTACKED):
        return _target_standing(RejectionCode.TARGET_ATTACKED, target)
    return _check_resolve_references(state, operation)


def _check_resolve_references(state: State, operation: Resolve) -> Refusal | None:
    """The subsumed, the decision and what it cites, the premises, the answers.

    The decision's own id may be cited by none of them: it is introduced last.
    """
    introduced: Introduced = {}
    refusal = _check_references(state, operation.subsumes, introduced)
    if refusal is not None:
        return refusal
    decision = operation.decision
    if decision is not None:
        if state.is_taken(decision.record):
            return _duplicate(decision.record)
        introduced[decision.record] = False
        refusal = _check_references(state, decision.premises, introduced)
        if refusal is not None:
            return refusal
    return _check_references(state, operation.premises, introduced) or _check_problems(
        state, operation.answers, introduced
    )


def _check_question(state: State, operation: Question) -> Refusal | None:
    if state.is_taken(operation.question):
        return _duplicate(operation.question)
    return _check_problems(state, operation.about, {operation.question: False})


def _check_references(
    state: State, references: Sequence[Reference], introduced: Introduced
) -> Refusal | None:
    """Ids must be known records; inline objects must be new, premises first. Left to right."""
    for reference in references:
        if isinstance(reference, str):
            if reference not in state.records and not introduced.get(reference):
                return _unknown(reference)
        else:
            refusal = _check_inline(state, reference, introduced)
            if refusal is not None:
                return refusal
    return None


def _check_inline(state: State, inline: InlineRecord, introduced: Introduced) -> Refusal | None:
    if state.is_taken(inline.record) or inline.record in introduced:
        return _duplicate(inline.record)
    introduced[inline.record] = False
    refusal = _check_references(state, inline.premises, introduced)
    introduced[inline.record] = True
    return refusal


def _check_problems(state: State, ids: Sequence[str], introduced: Introduced) -> Refusal | None:
    """What is explained, asked about or answered: known records or questions."""
    for id_ in ids:
        if not state.is_taken(id_) and not introduced.get(id_):
            return _unknown(id_)
    return None


def _check_evidence_stands(state: State, evidence: Reference) -> Refusal | None:
    if not isinstance(evidence, str):
        return None
    record = state.records[evidence]
    if record.stands:
        return None
    return Refusal(
        RejectionCode.EVIDENCE_NOT_IN_GOOD_STANDING,
        f"the evidence {record.id!r} is {record.standing}",
        (record.id,),
    )


def _someone_is_unaware(state: State, operation: ExpandAwareness, hearing: Audience) -> bool:
    """Whether an addressed agent who hears the turn is not aware of the proposition yet."""
    addressed = operation.agents
    if addressed is None and hearing is None:
        return not state.awareness.is_everyone_aware(operation.proposition)
    if addressed is None:
        addressed = hearing
    assert addressed is not None
    return any(
        not state.awareness.is_aware(agent, operation.proposition)
        for agent in addressed
        if hearing is None or agent in hearing
    )


def _id_of(reference: Reference) -> str:
    return reference if isinstance(reference, str) else reference.record


def _unknown(id_: str) -> Refusal:
    return Refusal(
        RejectionCode.UNKNOWN_REFERENCE, f"{id_!r} is not known in this conversation", (id_,)
    )


def _duplicate(id_: str) -> Refusal:
    return Refusal(RejectionCode.DUPLICATE_RECORD, f"{id_!r} exists already", (id_,))


def _self_reference(id_: str, role: str) -> Refusal:
    return Refusal(RejectionCode.SELF_REFERENCE, f"{id_!r} is named as {role}", (id_,))


def _target_standing(code: RejectionCode, target: Record) -> Refusal:
    state_of_it = "attacked" if code is RejectionCode.TARGET_ATTACKED else target.standing
    return Refusal(code, f"the target {target.id!r} is {state_of_it}", (target.id,))
