"""Labels of turns, by which readings are compared: the kinds of operations in them."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.operations import OPERATION_ORDER, Operation

Kinds = tuple[str, ...]
"""Kinds of operations, each once, in the order in which they are applied."""


def kinds(operations: Iterable[Operation]) -> Kinds:
    """The label of a turn with these operations."""
    present = {operation.op for operation in operations}
    return tuple(kind for kind in OPERATION_ORDER if kind in present)


def share(part: int, whole: int) -> float:
    """A share between 0 and 1; a share of nothing is 1."""
    return part / whole if whole else 1.0
