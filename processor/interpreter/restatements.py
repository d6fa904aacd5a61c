"""What an assistant says again is no second witness: it rests on what it repeats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from processor.engine.record import Record
from processor.engine.state import State
from processor.interpreter.candidates import normalised, same_claims
from schemas.contract import REFERENCES_MAX
from schemas.operations import (
    InlineRecord,
    Operation,
    Reference,
    References,
)

ASSISTANT = "assistant"


def link_restatements(
    state: State, role: str, operations: tuple[Operation, ...]
) -> tuple[Operation, ...]:
    """The operations of an utterance, every record that an assistant restates linked to the first.

    Such a record gets the restated one as a premise, so it is withdrawn with it. A restatement of
    the very record that it should support becomes that record, which the engine then refuses.
    """
    if role != ASSISTANT:
        return operations
    claims = [claim for operation in operations for claim in _claims(operation)]
    restated = {
        claim: _original(records)
        for claim, records in same_claims(state, claims).items()
        if records
    }
    return tuple(_linked(operation, restated) for operation in operations)


def _original(records: list[Record]) -> Record:
    """What is restated, of several records that say the same: the first that still counts."""
    return min(records, key=lambda record: (not record.stands, not record.grounded))


def _claims(operation: Operation) -> Iterator[str]:
    """All claims of the records that the operation introduces."""
    match operation.op:
        case "observe" | "hypothesize":
            yield operation.claim
            yield from _claims_in(*operation.premises)
        case "support" | "undermine":
            yield from _claims_in(operation.evidence)
        case "revise":
            yield from _claims_in(operation.by)
        case "resolve":
            yield from _claims_in(*operation.premises)
            if operation.decision is not None:
                yield from _claims_in(operation.decision)
        case "expand_awareness" | "question":
            return
        case _:
            assert_never(operation)


def _claims_in(*references: Reference) -> Iterator[str]:
    for reference in references:
        if isinstance(reference, InlineRecord):
            yield reference.claim
            yield from _claims_in(*reference.premises)


def _linked(operation: Operation, restated: dict[str, Record]) -> Operation:
    match operation.op:
        case "observe" | "hypothesize":
            premises = _premises(operation.record, operation.claim, operation.premises, restated)
            return operation.model_copy(update={"premises": premises})
        case "support":
            original = _restated_by(operation.evidence, restated)
            if original is not None and original.id == operation.target:
                return operation.model_copy(update={"evidence": original.id})
            return operation.model_copy(update={"evidence": _cited(operation.evidence, restated)})
        case "undermine":
            return operation.model_copy(update={"evidence": _cited(operation.evidence, restated)})
        case "revise":
            return operation.model_copy(update={"by": _cited(operation.by, restated)})
        case "resolve":
            decision = operation.decision
            return operation.model_copy(
                update={
                    "premises": tuple(_cited(each, restated) for each in operation.premises),
                    "decision": decision and _cited(decision, restated),
                }
            )
        case "expand_awareness" | "question":
            return operation
        case _:
            assert_never(operation)


def _cited(reference: Reference, restated: dict[str, Record]) -> Reference:
    if isinstance(reference, str):
        return reference
    premises = _premises(reference.record, reference.claim, reference.premises, restated)
    return reference.model_copy(update={"premises": premises})


def _restated_by(reference: Reference, restated: dict[str, Record]) -> Record | None:
    if isinstance(reference, str):
        return None
    return restated.get(normalised(reference.claim))


def _premises(
    record: str, claim: str, premises: References, restated: dict[str, Record]
) -> References:
    linked = tuple(_cited(premise, restated) for premise in premises)
    original = restated.get(normalised(claim))
    if original is None or original.id in (record, *premises):
        return linked
    return (original.id, *linked)[:REFERENCES_MAX]
