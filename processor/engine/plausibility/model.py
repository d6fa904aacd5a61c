"""The plausibility model M of one conversation: a log of updates, and the questions it answers.

Definition A.1, with the readings of the engine's specification: M *is* the ordered log; world sets
and plausibility orders are caches of it. There is no designated world, so a formula *holds* if it
is true at every world of the law, in the perspective of the empty set. Appending evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import final

from processor.engine.plausibility.awareness import Awareness
from processor.engine.plausibility.bounds import BoundExceeded, Bounds, Meter
from processor.engine.plausibility.evaluator import EngineName, Evaluator
from processor.engine.plausibility.formula import (
    And,
    Atom,
    Believes,
    Constant,
    Formula,
    Knows,
    Or,
    atoms,
)
from processor.engine.plausibility.log import Mark, UpdateLog
from processor.engine.plausibility.perspective import Perspective
from processor.engine.plausibility.semantics import Conjunction, Scene, truth
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
        self.append = self._log.append
        """Add an update as the last one; nothing is evaluated."""
        self._evaluator = Evaluator(self._log, self._bounds, engine, awareness or Awareness())

    # -- the log --------------------------------------------------------------------------------

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
    def last_turn(self) -> int:
        """The turn of the last update there was; 0 if there was none."""
        return self._log.last_turn

    def mark(self) -> Mark:
        """This moment, to go back to."""
        return self._log.mark()

    def rollback(self, mark: Mark) -> None:
        """Take back everything appended and contracted since the mark."""
        self._log.rollback(mark)

    @contextmanager
    def supposing(self, *formulas: Formula) -> Iterator[None]:
        """Whatever happens to the model inside is taken back at the end, with its caches.

        `formulas` are those that will be asked about.
        """
        mark = self._log.mark()
        with self._evaluator.suspended(formulas):
            try:
                yield
            finally:
                self._log.rollback(mark)

    def turn(self) -> AbstractContextManager[None]:
        """The questions asked inside share one bound on steps; else each has its own."""
        return self._evaluator.turn()

    @property
    def spoken_of(self) -> tuple[str, ...]:
        """The variables of the formulas that this turn will say, as far as it was told."""
        return self._evaluator.spoken_of

    @property
    def spent(self) -> int:
        """The steps that turns took since the model was made or loaded."""
        return self._evaluator.spent

    def speak_of(self, formulas: Iterable[Formula]) -> None:
        """Tell that this turn will say some formulas, so that caches can prepare for them."""
        names = [name for formula in formulas for name in atoms(formula)]
        self._evaluator.spoken_of = tuple(dict.fromkeys((*self.spoken_of, *names)))

    def speak_only_of(self, variables: tuple[str, ...]) -> None:
        """Tell that nothing else will be said after all."""
        self._evaluator.spoken_of = variables

    # -- questions ------------------------------------------------------------------------------

    def holds(self, formula: Formula) -> bool:
        """Whether the formula is true at every world of the law."""

        def is_everywhere(scene: Scene, here: Perspective, meter: Meter) -> bool:
            worlds = truth(formula, scene, here, meter)
            return (scene.states[here].law & ~worlds).is_empty()

        return self._evaluator.ask(formula, is_everywhere)

    def possible(self, formula: Formula) -> bool:
        """Whether the formula is true at some world of the law."""

        def is_somewhere(scene: Scene, here: Perspective, meter: Meter) -> bool:
            worlds = truth(formula, scene, here, meter)
            return not (scene.states[here].law & worlds).is_empty()

        return self._evaluator.ask(formula, is_somewhere)

    def possible_with(self, others: Conjunction, formula: Formula) -> bool:
        """Whether the formula is true at some world of the law where the others are true."""

        def is_somewhere(scene: Scene, here: Perspective, meter: Meter) -> bool:
            rest = scene.states[here].law & others.truth(scene, here, meter)
            worlds = truth(formula, scene, here, meter)
            meter.spend(0, rest.pairs_with(worlds))
            return not (rest & worlds).is_empty()

        return self._evaluator.ask(And((*others.mentioned, formula)), is_somewhere)

    def knows(self, agent: str, formula: Formula) -> bool:
        """Whether K_agent formula holds."""
        return self.holds(Knows(agent, formula))

    def believes(self, agent: str, formula: Formula) -> bool:
        """Whether B_agent formula holds."""
        return self.holds(Believes(agent, formula))

    def is_believed_by_any(self, agents: Sequence[str], formula: Formula) -> bool:
        """Whether some agent believes the formula; those who heard and see the same are one."""
        kinds = self._evaluator.kinds(agents, formula)
        return any(self.believes(agent, formula) for agent in kinds)

    def world_count(self) -> int:
        """|W|: how many assignments to the declared variables the law allows."""
        declared = self._evaluator.declared()

        def count(scene: Scene, here: Perspective, _: Meter) -> int:
            return scene.states[here].law.count(declared)

        return self._evaluator.ask(_about(declared), count)

    def worlds(self) -> list[frozenset[str]]:
        """W, each world as the declared variables true there, in a fixed order.

        A world's code reads its values as binary digits, the first declared variable first; the
        highest code comes first. Raises BoundExceeded (worlds) if there are too many.
        """
        declared = self._evaluator.declared()

        def listing(scene: Scene, here: Perspective, _: Meter) -> list[frozenset[str]]:
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
