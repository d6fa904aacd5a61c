"""One statement being applied: what the operations of a turn share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from processor.engine.impact import Impact
from processor.engine.plausibility.semantics import Conjunction
from processor.engine.plausibility.update import Update
from processor.engine.record import Audience, Record
from processor.engine.state import State
from processor.engine.transition import Transition
from schemas.derived import Note
from schemas.log import Rejection


@final
@dataclass(slots=True)
class Run:
    """One statement being applied: who says it to whom, and what has come of it so far.

    `decided` became decisions in this turn. `announced` are the observations of the turn until they
    are announced. `superseded` were revised because a projection said that it follows.
    """

    transition: Transition
    state: State
    turn: int
    speaker: str
    audience: Audience
    applied: list[int] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    impacts: list[Impact] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    decided: list[Record] = field(default_factory=list)
    announced: list[Update] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    _announced_together: Conjunction | None = None

    def contract(self, id_: str) -> None:
        """Take a record out of the model, if there is one with this id."""
        record = self.state.records.get(id_)
        if record is not None:
            self.transition.contract_model(record)

    def announced_together(self) -> Conjunction:
        """What the observations of the turn say so far; costs what was added since the last time.

        Most turns evaluate nothing and never ask.
        """
        together = self._announced_together
        if together is None:
            together = self._announced_together = Conjunction()
        for update in self.announced[len(together.formulas) :]:
            assert update.formula is not None
            together.add(update.formula)
        return together
