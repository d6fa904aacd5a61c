"""What was done, in a few words: text, and in between the ids it is about as one-element lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from schemas.operations import (
    InlineRecord,
    Operation,
    Reference,
)

Words = list[str | list[str]]
_NAMED_MAX = 6


def operation_words(operation: Operation) -> Words:
    """An operation as somebody would say it."""
    match operation.op:
        case "observe":
            return ["observe", [operation.record], *_listed("resting on", operation.premises)]
        case "hypothesize":
            return [
                "hypothesize",
                [operation.record],
                *_listed("resting on", operation.premises),
                *_listed("to explain", operation.explains),
            ]
        case "support":
            return ["support", [operation.target], "with", [_id(operation.evidence)]]
        case "undermine":
            return ["undermine", [operation.target], "with", [_id(operation.evidence)]]
        case "revise":
            return ["give up", [operation.target], "because of", [_id(operation.by)]]
        case "expand_awareness":
            record = [] if operation.record is None else _listed("as", [operation.record])
            return ["bring up", operation.proposition, *record]
        case "resolve":
            decision = [] if operation.decision is None else [operation.decision]
            return [
                f"settle on ({operation.mode})",
                [operation.target],
                *_listed("as decision", decision),
                *_listed("subsuming", operation.subsumes),
                *_listed("resting on", operation.premises),
                *_listed("answering", operation.answers),
            ]
        case "question":
            return ["ask", [operation.question], *_listed("about", operation.about)]
        case _:
            assert_never(operation)


def _id(reference: Reference) -> str:
    return reference.record if isinstance(reference, InlineRecord) else reference


def _listed(before: str, references: Sequence[Reference]) -> Words:
    if not references:
        return []
    named: Words = [[_id(each)] for each in references[:_NAMED_MAX]]
    more = len(references) - _NAMED_MAX
    return [before, *named, *([f"and {more} more"] if more > 0 else [])]
