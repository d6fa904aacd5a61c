"""From what an operation brings to what the model evaluates."""

from __future__ import annotations

from processor.engine.plausibility.formula import Formula, from_wire
from processor.engine.plausibility.syntax import parse
from schemas.formula import FormulaInput


def formula_of(brought: FormulaInput) -> Formula:
    """The formula of an operation. Raises FormulaError.

    Our interpreters append trees; a log that another program wrote may hold text, which is read the
    same way by everybody.
    """
    return parse(brought) if isinstance(brought, str) else from_wire(brought)
