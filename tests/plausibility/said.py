"""Short ways to write updates: each names its operation and takes formulas as text."""

from __future__ import annotations

from processor.engine.plausibility.model import Model
from processor.engine.plausibility.syntax import parse
from processor.engine.plausibility.update import Audience, Update, UpdateKind


def announce(
    formula: str, record: str = "o", audience: Audience = None, turn: int = 1, at_once: bool = False
) -> Update:
    """An announcement that stands for a record."""
    return Update(
        turn, UpdateKind.ANNOUNCEMENT, parse(formula), (record,), audience, simultaneous=at_once
    )


def radical(formula: str, record: str = "h", audience: Audience = None, turn: int = 1) -> Update:
    """A radical upgrade that stands for a record."""
    return Update(turn, UpdateKind.RADICAL, parse(formula), (record,), audience)


def conservative(
    formula: str, record: str = "h", audience: Audience = None, turn: int = 1
) -> Update:
    """A conservative upgrade that stands for a record."""
    return Update(turn, UpdateKind.CONSERVATIVE, parse(formula), (record,), audience)


def law(formula: str, record: str = "h", audience: Audience = None, turn: int = 1) -> Update:
    """A meaning law that stands for a record."""
    return Update(turn, UpdateKind.LAW, parse(formula), (record,), audience)


def sees(agent: str, *variables: str, audience: Audience = None) -> Update:
    """An agent observes variables."""
    return Update(
        0, UpdateKind.OBSERVES, audience=audience, agent=agent, variables=tuple(sorted(variables))
    )


def variable(name: str, audience: Audience = None) -> Update:
    """A variable is declared."""
    return Update(0, UpdateKind.VARIABLE, parse(name), (), audience)


def model_of(*updates: Update) -> Model:
    """A model with these updates as its log; none is of an earlier turn than the one before."""
    model = Model()
    turn = 0
    for update in updates:
        turn = max(turn, update.turn)
        model.append(update._replace(turn=turn))
    return model


def holds(model: Model, formula: str) -> bool:
    """Whether a formula, given as text, holds in the model."""
    return model.holds(parse(formula))
