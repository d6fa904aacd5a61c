"""One statement being applied: what the operations of a turn share."""

from __future__ import annotations

from typing import final

from processor.engine.authority import Authority
from processor.engine.impact import Impact
from processor.engine.plausibility.semantics import Conjunction
from processor.engine.plausibility.update import Update
from processor.engine.record import Audience, Record
from processor.engine.transition import Transition
from schemas.derived import Note
from schemas.log import Rejection


@final
class Run:
    """One statement being applied: who says it, to whom, with what authority, and its effects.

    `decided` became decisions in this turn. `announced` are the observations of the turn until they
    are announced. `superseded` were revised because a projection said that it follows.
    """

    __slots__ = (
        "_announced_together",
        "announced",
        "applied",
        "audience",
        "authority",
        "decided",
        "impacts",
        "notes",
        "rejections",
        "speaker",
        "state",
        "superseded",
        "transition",
        "turn",
    )

    def __init__(
        self,
        transition: Transition,
        turn: int,
        speaker: str,
        audience: Audience,
        authority: Authority,
    ) -> None:
        self.transition = transition
        self.state = transition.state
        self.turn = turn
        self.speaker = speaker
        self.audience = audience
        self.authority = authority
        self.applied: list[int] = []
        self.rejections: list[Rejection] = []
        self.impacts: list[Impact] = []
        self.notes: list[Note] = []
        self.decided: list[Record] = []
        self.announced: list[Update] = []
        self.superseded: list[str] = []
        self._announced_together: Conjunction | None = None

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
