"""States of the model, and the most plausible worlds of each agent.

A state is what the entries of one perspective have made of the law, the plausibility order and the
agents' cells. States form a chain, each with what led to it from the one before. The order is the
list of upgrades, newest first: a world is at least as plausible as another of its cell iff at the
newest upgrade that tells them apart it is the one inside. So the most plausible worlds of a set are
what is left after going from the newest upgrade to the oldest and keeping, in every cell where
some remaining world satisfies it, only those that do.

The best worlds are carried along the chain: where the best worlds of a cell meet what is announced
or upgraded, the common part is best afterwards, because the order is total in the cell. Only where
they miss it the list is gone through again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, final

from processor.engine.plausibility.bounds import Meter
from processor.engine.plausibility.worlds import WorldSet

Cells = tuple[str, ...]
"""The variables an agent observes, in ascending order: worlds that agree on them share a cell."""


@final
class Best(NamedTuple):
    """The most plausible worlds for an agent, and the steps it took from the first state on."""

    worlds: WorldSet
    steps: int


@final
@dataclass(slots=True)
class State:
    """The model after some entries.

    `law` are the possible worlds; `observed` what each agent sees; `upgrades` the newest upgrade
    and through it the others. From `previous` led here the newest upgrade if `upgraded` says so, an
    announcement of the worlds `told`, or that somebody sees more.
    `positions` are those of the variables of all entries so far, as bits; `steps` is what the law
    took to compute. `best` is filled, by cells, when somebody asks: who sees the same believes the
    same.
    """

    law: WorldSet
    observed: Mapping[str, Cells]
    upgrades: Upgrade | None
    previous: State | None
    positions: int
    steps: int
    steps_max: int
    upgraded: bool = False
    told: WorldSet | None = None
    best: dict[Cells, Best] = field(default_factory=dict)

    def cells(self, agent: str) -> Cells:
        """What the agent observes."""
        return self.observed.get(agent, ())


@final
class Upgrade:
    """One entry of the plausibility order, older ones behind it.

    A radical upgrade (`origin` None) puts its worlds first for everybody. A conservative one puts
    the most plausible of its worlds first, for each agent and cell as they were in `origin`.
    Neither this upgrade nor an older one depends on variables other than those at `positions`.
    """

    __slots__ = ("_chosen", "_origin", "_worlds", "older", "positions")

    def __init__(
        self, worlds: WorldSet, origin: State | None, older: Upgrade | None, positions: int
    ) -> None:
        self._worlds = worlds
        self._origin = origin
        self._chosen: dict[Cells, WorldSet] = {}
        self.older = older
        self.positions = positions

    def promoted(self, agent: str, meter: Meter) -> WorldSet:
        """The worlds that the upgrade puts first for the agent."""
        if self._origin is None:
            return self._worlds
        cells = self._origin.cells(agent)
        chosen = self._chosen.get(cells)
        if chosen is None:
            chosen = most_plausible(self._origin, agent, self._worlds, meter)
            self._chosen[cells] = chosen
        return chosen

    def __iter__(self) -> Iterator[Upgrade]:
        """This upgrade and the older ones, newest first."""
        upgrade: Upgrade | None = self
        while upgrade is not None:
            yield upgrade
            upgrade = upgrade.older


def first_state(everything: WorldSet, steps_max: int) -> State:
    """Every world is possible, all are equally plausible, and nobody sees anything."""
    return State(everything, {}, None, None, 0, 0, steps_max)


def announced(state: State, law: WorldSet, worlds: WorldSet, positions: int, steps: int) -> State:
    """The state with a smaller law: what was told of it are some worlds."""
    return replace(
        state,
        law=law,
        previous=state,
        positions=state.positions | positions,
        steps=steps,
        upgraded=False,
        told=worlds,
        best={},
    )


def upgraded(
    state: State, worlds: WorldSet, conservative: bool, positions: int, steps: int
) -> State:
    """The state with one more upgrade."""
    positions |= state.positions
    origin = state if conservative else None
    return replace(
        state,
        upgrades=Upgrade(worlds, origin, state.upgrades, positions),
        previous=state,
        positions=positions,
        steps=steps,
        upgraded=True,
        told=None,
        best={},
    )


def observing(state: State, agent: str, variables: tuple[str, ...], positions: int) -> State:
    """The state in which the agent sees these variables too."""
    seen = tuple(sorted({*state.cells(agent), *variables}))
    return replace(
        state,
        observed={**state.observed, agent: seen},
        previous=state,
        positions=state.positions | positions,
        upgraded=False,
        told=None,
        best={},
    )


def best_worlds(state: State, agent: str) -> Best:
    """The most plausible worlds of every cell of the agent. Raises BoundExceeded."""
    behind: list[State] = []
    reached: State | None = state
    while reached is not None and reached.cells(agent) not in reached.best:
        behind.append(reached)
        reached = reached.previous
    for each in reversed(behind):
        each.best[each.cells(agent)] = _carried(each, agent)
    return state.best[state.cells(agent)]


def most_plausible(state: State, agent: str, worlds: WorldSet, meter: Meter) -> WorldSet:
    """The most plausible among some worlds, in every cell of the agent that they meet."""
    lawful = worlds & state.law
    best = best_worlds(state, agent).worlds & worlds
    return _complete(state.upgrades, agent, state.cells(agent), best, lawful, meter)


def met_cells(worlds: WorldSet, cells: Cells, meter: Meter) -> WorldSet:
    """All worlds of the cells in which the set has one. Raises BoundExceeded."""
    meter.spend(pairs=worlds.spread_pairs(cells))
    met = worlds.spread(cells)
    meter.spend(met.nodes)
    return met


def _carried(state: State, agent: str) -> Best:
    """The best worlds of a state from those of the state before it."""
    before = state.previous
    if before is None:
        return Best(state.law, state.steps)
    old, steps = before.best[before.cells(agent)]
    meter = Meter(state.steps_max, steps)
    cells = state.cells(agent)
    if state.upgraded:
        assert state.upgrades is not None
        news = state.upgrades.promoted(agent, meter)
        first = news & state.law
        best = _complete(state.upgrades.older, agent, cells, old & news, first, meter)
        best = best | (old & ~met_cells(best, cells, meter))
    else:  # a smaller law, or smaller cells, some of which lost their best worlds
        news = state.law if state.told is None else state.told
        best = _complete(state.upgrades, agent, cells, old & news, state.law, meter)
    meter.spend(best.nodes, old.pairs_with(news))
    return Best(best, meter.spent)


def _complete(
    upgrades: Upgrade | None,
    agent: str,
    cells: Cells,
    best: WorldSet,
    worlds: WorldSet,
    meter: Meter,
) -> WorldSet:
    """`best`, and the most plausible of `worlds` in the cells that have no world in `best`."""
    missed = worlds & ~met_cells(best, cells, meter)
    if missed.is_empty():
        return best
    return best | _filtered(upgrades, agent, cells, missed, meter)


def _filtered(
    upgrades: Upgrade | None, agent: str, cells: Cells, worlds: WorldSet, meter: Meter
) -> WorldSet:
    """The definition: from the newest upgrade to the oldest, keep per cell what satisfies it.

    It ends early when the worlds that are left agree on all that older upgrades depend on.
    """
    for upgrade in upgrades or ():
        if worlds.decides(upgrade.positions):
            break
        promoted = upgrade.promoted(agent, meter)
        kept = worlds & promoted
        meter.spend(kept.nodes, worlds.pairs_with(promoted))
        if not kept.is_empty():
            worlds = kept | (worlds & ~met_cells(kept, cells, meter))
    return worlds
