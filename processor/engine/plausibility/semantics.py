"""The meaning of formulas: at which worlds each is true (Definition A.1, with A.3 for awareness).

There is no designated world. K_i quantifies over the agent's cell, B_i over its most plausible
worlds, C_G over all that can be reached through the cells of the group. Each modality looks at the
perspective it moves to, so the truth of `K_i p` at a world depends on that world's cell alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import assert_never, final

from processor.engine.plausibility.beliefs import State, best_worlds, met_cells
from processor.engine.plausibility.bounds import Meter
from processor.engine.plausibility.formula import (
    And,
    Atom,
    Aware,
    Believes,
    Common,
    Constant,
    Explicit,
    Formula,
    Iff,
    Implies,
    Knows,
    Not,
    Or,
    atoms,
    has_modality,
)
from processor.engine.plausibility.perspective import Perspective, require_common, seen_by
from processor.engine.plausibility.worlds import WorldSet, WorldSpace

AwarenessTest = Callable[[str, str, Perspective], bool]
"""Whether an agent is aware of a proposition, in a perspective."""


@final
@dataclass(frozen=True, slots=True)
class Scene:
    """What formulas are evaluated against: the state of every needed perspective at one moment.

    `heard` are the private audiences of the entries so far, for C_G to tell who missed something.
    """

    space: WorldSpace
    states: Mapping[Perspective, State]
    heard: Perspective
    is_aware: AwarenessTest


def truth(formula: Formula, scene: Scene, here: Perspective, meter: Meter) -> WorldSet:
    """The worlds at which the formula is true, in and outside the law.

    Raises BoundExceeded, and CommonKnowledgeUndefined where a group did not hear everything.
    """
    worlds = _truth(formula, scene, here, meter)
    meter.spend(worlds.nodes)
    return worlds


@final
class Conjunction:
    """Formulas that are to be true together, evaluated one by one as they are added.

    What is known is kept as long as it cannot change: for formulas without modalities, as long as
    the space is the same. Each formula is counted once, however often it is evaluated again.
    `mentioned` is what a question about all of them is about: those with modalities, and the
    variables of the others.
    """

    def __init__(self) -> None:
        self.formulas: list[Formula] = []
        self.mentioned: dict[Formula, None] = {}
        self._is_modal = False
        self._space: WorldSpace | None = None
        self._worlds: list[WorldSet] = []
        self._counted = 0

    def add(self, formula: Formula) -> None:
        """One more, the last."""
        self.formulas.append(formula)
        self._is_modal = self._is_modal or has_modality(formula)
        about = (formula,) if has_modality(formula) else map(Atom, atoms(formula))
        self.mentioned.update(dict.fromkeys(about))

    def truth(self, scene: Scene, here: Perspective, meter: Meter) -> WorldSet:
        """The worlds at which all are true. Raises what `truth` raises."""
        if self._space is not scene.space or self._is_modal:
            self._space = scene.space
            self._worlds = [scene.space.everything()]
        while len(self._worlds) <= len(self.formulas):
            place = len(self._worlds) - 1
            own = meter if place >= self._counted else Meter(sys.maxsize)
            more = _all((self.formulas[place],), scene, here, own)
            worlds = self._worlds[-1] & more
            own.spend(worlds.nodes, self._worlds[-1].pairs_with(more))
            self._worlds.append(worlds)
            self._counted = max(self._counted, place + 1)
        return self._worlds[-1]


def _truth(formula: Formula, scene: Scene, here: Perspective, meter: Meter) -> WorldSet:
    match formula:
        case Atom(name):
            return scene.space.where(name)
        case Constant(value):
            everything = scene.space.everything()
            return everything if value else ~everything
        case Not(inner):
            return ~truth(inner, scene, here, meter)
        case And(parts):
            return _all(parts, scene, here, meter)
        case Or(parts):
            return ~_all([Not(part) for part in parts], scene, here, meter)
        case Implies(left, right):
            return ~truth(left, scene, here, meter) | truth(right, scene, here, meter)
        case Iff(left, right):
            one, other = truth(left, scene, here, meter), truth(right, scene, here, meter)
            return (one & other) | (~one & ~other)
        case Knows(agent, inner):
            return _knows(agent, inner, scene, here, meter)
        case Believes(agent, inner):
            there = seen_by(here, agent)
            state = scene.states[there]
            doubts = best_worlds(state, agent).worlds & ~truth(inner, scene, there, meter)
            return ~met_cells(doubts, state.cells(agent), meter)
        case Common(agents, inner):
            return _common(agents, inner, scene, here, meter)
        case Aware(agent, inner):
            return _aware(agent, inner, scene, here)
        case Explicit(agent, inner):
            return _aware(agent, inner, scene, here) & _knows(agent, inner, scene, here, meter)
        case _:
            assert_never(formula)


def _all(
    parts: tuple[Formula, ...] | list[Not], scene: Scene, here: Perspective, meter: Meter
) -> WorldSet:
    def both(left: WorldSet, part: Formula) -> WorldSet:
        right = truth(part, scene, here, meter)
        worlds = left & right
        meter.spend(worlds.nodes, left.pairs_with(right))
        return worlds

    return reduce(both, parts, scene.space.everything())


def _knows(agent: str, formula: Formula, scene: Scene, here: Perspective, meter: Meter) -> WorldSet:
    there = seen_by(here, agent)
    state = scene.states[there]
    exceptions = state.law & ~truth(formula, scene, there, meter)
    return ~met_cells(exceptions, state.cells(agent), meter)


def _common(
    agents: tuple[str, ...], formula: Formula, scene: Scene, here: Perspective, meter: Meter
) -> WorldSet:
    """False wherever some path through the group's cells leads to a world that is an exception."""
    require_common(here & scene.heard, agents)
    state = scene.states[here]
    cells = tuple(dict.fromkeys(state.cells(agent) for agent in agents))
    exceptions = state.law & ~truth(formula, scene, here, meter)
    nowhere = ~scene.space.everything()
    while True:
        reaching = nowhere
        for seen in cells:
            reaching = reaching | met_cells(exceptions, seen, meter)
            meter.spend(reaching.nodes)
        more = reaching & state.law & ~exceptions
        if more.is_empty():
            return ~reaching
        exceptions = exceptions | more


def _aware(agent: str, formula: Formula, scene: Scene, here: Perspective) -> WorldSet:
    """Everywhere or nowhere: awareness does not differ between worlds."""
    everything = scene.space.everything()
    if all(scene.is_aware(agent, name, here) for name in atoms(formula)):
        return everything
    return ~everything
