"""The native interpreter: the utterance brings its operations, no model is called.

Formulas written as text become trees here, so that the log carries trees only. Parsing can fail;
then the whole utterance is invalid, and the error says where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from processor.engine.plausibility.formula import FormulaError, from_wire, to_wire
from processor.engine.plausibility.syntax import parse
from schemas.formula import FormulaInput
from schemas.log import Interpretation
from schemas.operations import (
    InlineRecord,
    Operation,
    Reference,
    References,
)
from schemas.wire import WireError

NATIVE = Interpretation(interpreter="native")
FORMULA_CHARS_MAX = 65_536
"""Of all formulas written as text: a tree of one takes about fifty times as many bytes."""


def parse_formulas(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """The operations with every formula as a tree. Raises WireError naming the field."""
    chars = sum(map(_formula_chars, operations))
    if chars > FORMULA_CHARS_MAX:
        raise WireError(
            "operations",
            f"{chars:,} characters of formulas; an utterance may have {FORMULA_CHARS_MAX:,}",
        )
    return tuple(
        _parse_operation(operation, f"operations.{index}")
        for index, operation in enumerate(operations)
    )


def _parse_operation(operation: Operation, place: str) -> Operation:
    match operation.op:
        case "observe" | "hypothesize":
            if operation.formula is None and not _has_inline(operation.premises):
                return operation
            return operation.model_copy(
                update={
                    "formula": _tree(operation.formula, place),
                    "premises": _parse_all(operation.premises, f"{place}.premises"),
                }
            )
        case "support" | "undermine":
            evidence = _parse_reference(operation.evidence, f"{place}.evidence")
            return operation.model_copy(update={"evidence": evidence})
        case "revise":
            by = _parse_reference(operation.by, f"{place}.by")
            return operation.model_copy(update={"by": by})
        case "resolve":
            decision = operation.decision
            return operation.model_copy(
                update={
                    "premises": _parse_all(operation.premises, f"{place}.premises"),
                    "decision": decision and _parse_inline(decision, f"{place}.decision"),
                }
            )
        case "expand_awareness" | "question":
            return operation
        case _:
            assert_never(operation)


def _parse_all(references: References, place: str) -> References:
    if not _has_inline(references):
        return references
    return tuple(
        _parse_reference(reference, f"{place}.{index}")
        for index, reference in enumerate(references)
    )


def _parse_reference(reference: Reference, place: str) -> Reference:
    if isinstance(reference, str):
        return reference
    return _parse_inline(reference, place)


def _parse_inline(inline: InlineRecord, place: str) -> InlineRecord:
    return inline.model_copy(
        update={
            "formula": _tree(inline.formula, place),
            "premises": _parse_all(inline.premises, f"{place}.premises"),
        }
    )


def _tree(formula: FormulaInput | None, place: str) -> FormulaInput | None:
    """The formula as a tree that the engine accepts."""
    if formula is None:
        return None
    try:
        parsed = parse(formula) if isinstance(formula, str) else from_wire(formula)
    except FormulaError as error:
        raise WireError(f"{place}.formula", str(error)) from error
    return to_wire(parsed)


def _formula_chars(operation: Operation) -> int:
    match operation.op:
        case "observe" | "hypothesize":
            return _chars(operation.formula) + sum(map(_chars_in, operation.premises))
        case "support" | "undermine":
            return _chars_in(operation.evidence)
        case "revise":
            return _chars_in(operation.by)
        case "resolve":
            decision = 0 if operation.decision is None else _chars_in(operation.decision)
            return decision + sum(map(_chars_in, operation.premises))
        case "expand_awareness" | "question":
            return 0
        case _:
            assert_never(operation)


def _chars_in(reference: Reference) -> int:
    if isinstance(reference, str):
        return 0
    return _chars(reference.formula) + sum(map(_chars_in, reference.premises))


def _chars(formula: FormulaInput | None) -> int:
    return len(formula) if isinstance(formula, str) else 0


def _has_inline(references: References) -> bool:
    return any(not isinstance(reference, str) for reference in references)
