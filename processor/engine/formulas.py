"""From what an operation brings to what the model evaluates."""

from __future__ import annotations

from processor.engine.errors import BrokenInvariantError
from processor.engine.plausibility.formula import Formula, from_wire
from schemas.formula import FormulaInput


def formula_of(brought: FormulaInput) -> Formula:
    """The formula of an operation in the log, where formulas are trees. Raises FormulaError."""
    if isinstance(brought, str):
        raise BrokenInvariantError("a formula is still text: the interpreter must parse it")
    return from_wire(brought)
