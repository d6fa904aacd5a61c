"""Questions to the log: what is synchronised, placed and replayed before a formula is evaluated.

The answer is a function of the log and the question. So that a bound is one too, the variables of
the log stand in the space in the order of their first occurrence and those of the question after
them; where leftovers of other questions would disturb that, the space is made anew. Within a turn
those of the formulas it brings stand between them, as they will in the log; while something is only
supposed, all keep the places that they had before. If the diagrams run out of memory with
anything cached, the question is asked once more from scratch, and that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, TypeAlias, TypeVar, assert_never, final

from processor.engine.plausibility.allowance import Allowance
from processor.engine.plausibility.awareness import Awareness
from processor.engine.plausibility.beliefs import Cells, State, best_worlds
from processor.engine.plausibility.bounds import BoundExceeded, Bounds, Meter, OutOfMemory
from processor.engine.plausibility.diagrams import DiagramSpace
from processor.engine.plausibility.formula import (
    Formula,
    Or,
    atoms,
    has_common_knowledge,
    minded,
)
from processor.engine.plausibility.log import UpdateLog
from processor.engine.plausibility.perspective import (
    EVERYONE_ONLY,
    Perspective,
    View,
    closure,
    keeps,
    seen_by,
)
from processor.engine.plausibility.relevance import Relevance
from processor.engine.plausibility.replay import Replay, stepped
from processor.engine.plausibility.semantics import AwarenessTest, Scene
from processor.engine.plausibility.update import Update, UpdateKind, mentioned
from processor.engine.plausibility.worlds import (
    EXPLICIT_VARIABLES_MAX,
    ExplicitSpace,
    WorldSpace,
)

EngineName: TypeAlias = Literal["auto", "explicit", "diagrams"]
"""Which world sets to use; auto takes explicit ones as long as the variables are few."""

ENTRIES_PER_STEP = 64
"""Going through the log without looking at worlds is one step for so many entries."""

Answer = TypeVar("Answer")
Question: TypeAlias = Callable[[Scene, Perspective, Meter], Answer]
"""Asked of the present states, in the perspective of the empty set; the meter counts its steps."""


@final
class Evaluator:
    """The caches between a log and its answers.

    `spoken_of` are the variables of formulas that will enter the log at the end of this turn.
    `spent` counts the steps that all turns took so far in this process.
    """

    def __init__(
        self, log: UpdateLog, bounds: Bounds, engine: EngineName, awareness: Awareness
    ) -> None:
        self._log = log
        self._bounds = bounds
        self._engine = engine
        self._awareness = awareness
        self._awareness_version = awareness.version
        self._relevance = Relevance()
        self._awake: list[str] = []
        self._replay = Replay(self._new_space(0), bounds)
        self._turn: Allowance | None = None
        self.spoken_of: tuple[str, ...] = ()
        self.spent = 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The questions asked inside share one allowance, and otherwise each has its own."""
        assert self._turn is None, "one turn at a time"
        self._turn = self._begin()
        try:
            yield
        finally:
            self.spent += self._turn.meter.spent
            self._turn = None
            self.spoken_of = ()

    def ask(self, formula: Formula, question: Question[Answer]) -> Answer:
        """Ask about the variables and perspectives of a formula.

        Raises BoundExceeded, and CommonKnowledgeUndefined.
        """
        allowance = self._begin()
        allowance.meter.spend()
        try:
            return self._ask_in_vain_once(formula, question, allowance)
        except BoundExceeded as bound:
            if bound.bound == "nodes":
                allowance.meter.fail()
            raise

    def kinds(self, agents: Sequence[str], formula: Formula) -> list[str]:
        """The first of the agents for each kind, which has heard and sees the same.

        Raises BoundExceeded.
        """
        allowance = self._begin()
        here = self._everything(formula)
        allowance.meter.charge(1 + len(agents) * (1 + len(here)) // ENTRIES_PER_STEP)
        found: dict[tuple[Perspective, Cells], str] = {}
        for agent in agents:
            there = seen_by(here, agent)
            found.setdefault((there, self._relevance.seen(agent, there)), agent)
        return list(found.values())

    def declared(self) -> tuple[str, ...]:
        """The declared variables, in the order of their declaration."""
        self._sync()
        return tuple(self._relevance.declared)

    def relevant(self, formula: Formula) -> Iterator[Update]:
        """The entries that an answer about the formula can depend on, in order.

        Raises BoundExceeded.
        """
        self._begin().meter.charge(1 + len(self._log.entries) // ENTRIES_PER_STEP)
        names = dict.fromkeys(atoms(formula))
        for update in self._log.updates():
            if self._relevance.is_relevant(update) or not names.keys().isdisjoint(
                mentioned(update)
            ):
                yield update

    @contextmanager
    def suspended(self, formulas: Sequence[Formula]) -> Iterator[None]:
        """Keep what is cached while the log is changed and changed back.

        `formulas` are those that will be asked about: what they need is cached before. Raises
        BoundExceeded, and CommonKnowledgeUndefined.
        """
        allowance = self._begin()
        allowance.meter.charge(1 + len(self._log.entries) // ENTRIES_PER_STEP)
        together = Or(tuple(formulas))
        self.ask(together, lambda *_: None)
        self._place(atoms(together))
        replay = self._replay.copy()
        self._replay.pin(atoms(together))
        try:
            with allowance.aside():
                yield
        finally:
            self._relevance.sync(self._log)
            self._replay = replay

    def _ask_in_vain_once(
        self, formula: Formula, question: Question[Answer], allowance: Allowance
    ) -> Answer:
        was_fresh = self._replay.is_fresh()
        try:
            return self._ask(formula, question, allowance)
        except OutOfMemory:
            self._renew()
            if was_fresh:
                raise
            return self._ask(formula, question, allowance)

    def _ask(self, formula: Formula, question: Question[Answer], allowance: Allowance) -> Answer:
        fragile = self._relevance.fragile(atoms(formula))
        if not fragile:
            return self._ask_about(formula, question, allowance)
        replay = self._replay
        self._awake = fragile
        try:
            self._renew()
            with allowance.aside(settled=0):
                return self._ask_about(formula, question, allowance)
        finally:
            self._awake = []
            self._replay = replay

    def _ask_about(
        self, formula: Formula, question: Question[Answer], allowance: Allowance
    ) -> Answer:
        meter = allowance.meter
        variables = atoms(formula)
        self._place(variables)
        here = self._everything(formula)
        perspectives, beliefs = closure(
            formula, here, self._replay.modal, self._bounds.perspectives, meter
        )
        states = self._replay.states(perspectives, self._awareness_at)
        views = [*map(View, perspectives), *beliefs]
        costs = {view: _cost(view, states[view.perspective]) for view in views}
        for view, cost in costs.items():
            paid = self._replay.state_before(view.perspective, allowance.paid_up_to(view))
            allowance.pay(view, len(self._log.entries), cost, _cost(view, paid))
        heard = frozenset(self._relevance.private)
        scene = Scene(self._replay.space, states, heard, self._awareness_at(None))
        asleep = (name for name in variables if name not in self._awake)
        for update in self._relevance.inert_entries(asleep):
            for there in perspectives:
                states[there] = stepped(update, states[there], scene, there)
        for view, cost in costs.items():
            meter.charge(_cost(view, states[view.perspective]) - cost)
        return question(scene, here, meter)

    def _everything(self, formula: Formula) -> Perspective:
        """The perspective of the empty set: it keeps every private audience there is."""
        names = dict.fromkeys(minded(formula))
        for _, of_entry in self._replay.minded:
            names.update(dict.fromkeys(of_entry))
        return frozenset((*self._relevance.private, *self._awareness.private_audiences(names)))

    def _begin(self) -> Allowance:
        """What the next question may take, when all is up to date with the log."""
        self._sync()
        return self._turn or Allowance(self._bounds, len(self._log.entries))

    def _sync(self) -> None:
        """Cut the replay where the log, or awareness that it depends on, has changed."""
        lowest, moved = self._relevance.sync(self._log)
        if self._awareness_version != self._awareness.version:
            self._awareness_version = self._awareness.version
            if self._replay.minded:
                lowest = min(lowest, self._replay.minded[0][0])
        if self._turn is not None:
            self._turn.cut(lowest)
        if moved:
            self._renew()
            return
        self._replay.cut(lowest)
        self._extend(lowest)

    def _extend(self, lowest: int) -> None:
        for serial in range(lowest, len(self._log.entries)):
            update = self._log.entries[serial]
            if update is not None and self._is_replayed(update):
                self._replay.extend(serial, update, self._heard_before(serial, update))

    def _is_replayed(self, update: Update) -> bool:
        if self._relevance.is_relevant(update):
            return True
        is_declaration = update.kind is UpdateKind.VARIABLE
        return not is_declaration and any(name in self._awake for name in mentioned(update))

    def _heard_before(self, serial: int, update: Update) -> Perspective:
        """The private audiences before an entry, or before the announcements it belongs to."""
        if update.formula is None or not has_common_knowledge(update.formula):
            return EVERYONE_ONLY
        while update.simultaneous and serial:
            before = self._log.entries[serial - 1]
            if before is not None and (not before.simultaneous or before.turn != update.turn):
                break
            serial -= 1
        return self._relevance.heard_before(serial)

    def _renew(self, variables: int = 0) -> None:
        """Start from an empty space that is right for so many variables."""
        self._replay = Replay(self._new_space(variables), self._bounds)
        self._extend(0)

    def _place(self, variables: Sequence[str]) -> None:
        """Bring all variables into the space, in an order that depends on nothing but them."""
        known = frozenset(self._replay.variables)
        mentioned_next = dict.fromkeys((*self.spoken_of, *variables))
        others = [name for name in mentioned_next if name not in known]
        count = self._replay.count_with(others)
        limit = EXPLICIT_VARIABLES_MAX if self._engine == "explicit" else self._bounds.variables
        if count > limit:
            raise BoundExceeded("variables", limit)
        is_explicit = isinstance(self._replay.space, ExplicitSpace)
        if is_explicit is self._wants_explicit(count) and self._replay.place(others):
            return
        self._renew(count)
        placed = self._replay.place(others)
        assert placed, "an empty space takes any order"

    def _wants_explicit(self, variables: int) -> bool:
        match self._engine:
            case "auto":
                return variables <= EXPLICIT_VARIABLES_MAX
            case "explicit":
                return True
            case "diagrams":
                return False
            case _:
                assert_never(self._engine)

    def _new_space(self, variables: int) -> WorldSpace:
        if self._wants_explicit(variables):
            return ExplicitSpace()
        return DiagramSpace(self._bounds)

    def _awareness_at(self, update: Update | None) -> AwarenessTest:
        """Awareness now, or as an entry found it.

        An entry finds the expansions of its own turn, which come first in a turn, unless it is one
        of the simultaneous announcements, which are evaluated in the model before the turn. It
        never finds the records of its own turn.
        """
        before = None
        if update is not None:
            before = (update.turn + (not update.simultaneous), update.turn)

        def is_aware(agent: str, proposition: str, here: Perspective) -> bool:
            return self._awareness.test(
                agent, proposition, lambda audience: keeps(here, audience), before
            )

        return is_aware


def _cost(view: View, state: State) -> int:
    """The steps from the first state on."""
    if view.believer is None:
        return state.steps
    return best_worlds(state, view.believer).steps
