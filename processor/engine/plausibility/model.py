"""The plausibility model M of one conversation: a log of updates, and the questions it answers.

Definition A.1, with the readings of the engine's specification: M *is* the ordered log; world sets
and plausibility orders are caches of it. There is no designated world, so a formula *holds* if it
is true at every world of the law, in the perspective of the empty set. Appending evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from processor.engine.plausibility.awareness import Awareness
from processor.engine.plausibility.bounds import BoundExceeded, Bounds, Meter
from processor.engine.plausibility.evaluator import EngineName, Evaluator
from processor.engine.plausibility.formula import (
    Atom,
    Believes,
    Constant,
    Formula,
    Knows,
    Or,
)
from processor.engine.plausibility.log import Mark, UpdateLog
from processor.engine.plausibility.perspective import Perspective
from processor.engine.plausibility.semantics import Scene, truth
from processor.engine.plausibility.update import Update, UpdateKind


@final
class Model:
    """M. Questions raise BoundExceeded beyond the bounds, and CommonKnowledgeUndefined.

    `awareness` is what aware_i and X_i read; without one nobody is aware of anything.
    """

    def __init__(
        self,
        bounds: Bounds | None = None,
        engine: EngineName = "auto",
        awareness: Awareness | None = None,
    ) -> None:
        self._bounds = Bounds() if bounds is None else bounds
        self._log = UpdateLog()
        self._evaluator = Evaluator(self._log, self._bounds, engine, awareness or Awareness())

    # -- the log --------------------------------------------------------------------------------

    def append(self, update: Update) -> None:
        """Add an update as the last one; nothing is evaluated."""
        self._log.append(update)

    def contract(self, record_id: str) -> tuple[Update, ...]:
        """Drop every update tagged with the record, and return them in order.

        What is left is evaluated again when somebody asks.
        """
        return self._log.contract(record_id)

    def updates(self) -> Iterator[Update]:
        """The updates in order."""
        return self._log.updates()

    def updates_of_turn(self, turn: int) -> tuple[Update, ...]:
        """The updates of one turn in order; a look-up."""
        return self._log.of_turn(turn)

    @property
    def explicit_formulas(self) -> bool:
        """Whether any update carries a formula that is more than a variable or its negation."""
        return self._log.explicit > 0

    def mark(self) -> Mark:
        """This moment, to go back to."""
        return self._log.mark()

    def rollback(self, mark: Mark) -> None:
        """Take back everything appended and contracted since the mark."""
        self._log.rollback(mark)

    @contextmanager
    def supposing(self) -> Iterator[None]:
        """Whatever happens to the model inside is taken back at the end, with its caches."""
        mark = self._log.mark()
        with self._evaluator.suspended():
            try:
                yield
            finally:
                self._log.rollback(mark)

    # -- questions ------------------------------------------------------------------------------

    def holds(self, formula: Formula) -> bool:
        """Whether the formula is true at every world of the law."""

        def is_everywhere(scene: Scene, here: Perspective) -> bool:
            worlds = truth(formula, scene, here, Meter(self._bounds.steps))
            return (scene.states[here].law & ~worlds).is_empty()

        return self._evaluator.ask(formula, is_everywhere)

    def possible(self, formula: Formula) -> bool:
        """Whether the formula is true at some world of the law."""

        def is_somewhere(scene: Scene, here: Perspective) -> bool:
            worlds = truth(formula, scene, here, Meter(self._bounds.steps))
            return not (scene.states[here].law & worlds).is_empty()

        return self._evaluator.ask(formula, is_somewhere)

    def knows(self, agent: str, formula: Formula) -> bool:
        """Whether K_agent formula holds."""
        return self.holds(Knows(agent, formula))

    def believes(self, agent: str, formula: Formula) -> bool:
        """Whether B_agent formula holds."""
        return self.holds(Believes(agent, formula))

    def world_count(self) -> int:
        """|W|: how many assignments to the declared variables the law allows."""
        declared = self._evaluator.declared()

        def count(scene: Scene, here: Perspective) -> int:
            return scene.states[here].law.count(declared)

        return self._evaluator.ask(_about(declared), count)

    def worlds(self) -> list[frozenset[str]]:
        """W, each world as the declared variables true there, in a fixed order.

        A world's code reads its values as binary digits, the first declared variable first; the
        highest code comes first. Raises BoundExceeded (worlds) if there are too many.
        """
        declared = self._evaluator.declared()

        def listing(scene: Scene, here: Perspective) -> list[frozenset[str]]:
            law = scene.states[here].law
            if law.count(declared) > self._bounds.worlds:
                raise BoundExceeded("worlds", self._bounds.worlds)
            return law.assignments(declared)

        return self._evaluator.ask(_about(declared), listing)

    def lawful_records(self, formula: Formula) -> tuple[str, ...]:
        """The records that laws and announcements stand for, the latest first, each once.

        Those that the truth of the formula cannot depend on are left out.
        """
        tags = [
            tag
            for update in self._evaluator.relevant(formula)
            if update.kind in (UpdateKind.LAW, UpdateKind.ANNOUNCEMENT)
            for tag in update.tags
        ]
        return tuple(dict.fromkeys(reversed(tags)))


def _about(variables: tuple[str, ...]) -> Formula:
    """A formula that mentions the variables; what it says does not matter."""
    return Or((Constant(True), Constant(True), *(Atom(name) for name in variables)))
