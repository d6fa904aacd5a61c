"""Replay: from the log to the state of the model in each perspective, kept as far as it is valid.

The relevant entries are gone through in order. At each of them every perspective in use takes one
step, all of them from the states before it, so an entry that speaks of knowledge or belief is
evaluated, in every perspective, in the model as it was. World sets are caches of the log: an
append extends the tracks, a contraction cuts them at the earliest entry it dropped.

An entry that would leave no world, or whose common knowledge is undefined, is passed over in the
perspective where that happens. An operation that brings a formula is checked before it is
appended, so this concerns entries that became impossible when others were evaluated again, bare
ones, and views of agents who missed something.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import assert_never, final

from processor.engine.plausibility.beliefs import (
    State,
    announced,
    first_state,
    observing,
    upgraded,
)
from processor.engine.plausibility.bounds import (
    BoundExceeded,
    Bounds,
    CommonKnowledgeUndefined,
    Meter,
)
from processor.engine.plausibility.formula import (
    Formula,
    has_modality,
    literal,
    minded,
)
from processor.engine.plausibility.perspective import Perspective, keeps
from processor.engine.plausibility.semantics import AwarenessTest, Scene, truth
from processor.engine.plausibility.update import Audience, Update, UpdateKind, mentioned
from processor.engine.plausibility.worlds import WorldSet, WorldSpace

AwarenessAt = Callable[[Update | None], AwarenessTest]
"""Awareness as it was when an update was made; None is now."""

TRACKS_MAX = 512
"""Tracks kept for later questions, at least; more are kept only while one question needs them."""


@final
class Replay:
    """The relevant entries, the order of their variables, and the states they lead to.

    `tracks[p][k]` is the state of perspective p after the first k entries. `variables` are those of
    the entries in the order of their first occurrence, which is their order in the space; the first
    `placed` of them are known to be there. `modal` are the formulas with modalities and their
    audiences; `minded` the serials of those that depend on awareness, and of which variables.
    """

    def __init__(self, space: WorldSpace, bounds: Bounds) -> None:
        self.space = space
        self.variables: list[str] = []
        self.modal: list[tuple[Audience, Formula]] = []
        self.minded: list[tuple[int, tuple[str, ...]]] = []
        self._bounds = bounds
        self._entries: list[Update] = []
        self._serials: list[int] = []
        self._bases: list[int] = []
        self._heard: list[Perspective] = []
        self._known: set[str] = set()
        self._counts: list[tuple[int, int]] = []
        self._placed = 0
        self._pinned: dict[str, None] = {}
        self._tracks: dict[Perspective, list[State]] = {}

    def copy(self) -> Replay:
        """An independent replay of the same log; states and space are shared."""
        other = Replay(self.space, self._bounds)
        other.variables = self.variables.copy()
        other.modal = self.modal.copy()
        other.minded = self.minded.copy()
        other._entries = self._entries.copy()
        other._serials = self._serials.copy()
        other._bases = self._bases.copy()
        other._heard = self._heard.copy()
        other._known = self._known.copy()
        other._counts = self._counts.copy()
        other._placed = self._placed
        other._pinned = self._pinned
        other._tracks = {here: track.copy() for here, track in self._tracks.items()}
        return other

    def cut(self, serial: int) -> None:
        """Forget every entry from this serial on."""
        while self._serials and self._serials[-1] >= serial:
            self._serials.pop()
            self._entries.pop()
            self._bases.pop()
            self._heard.pop()
            variables, modal = self._counts.pop()
            self._known.difference_update(self.variables[variables:])
            del self.variables[variables:]
            del self.modal[modal:]
        while self.minded and self.minded[-1][0] >= serial:
            self.minded.pop()
        self._placed = min(self._placed, len(self.variables))
        for track in self._tracks.values():
            del track[len(self._entries) + 1 :]

    def extend(self, serial: int, update: Update, heard: Perspective) -> None:
        """Add a relevant entry as the last one; nothing is evaluated yet.

        `heard` are the private audiences of what was said before, if the entry depends on them.
        """
        place = len(self._entries)
        base = place
        if update.simultaneous and place:
            before = self._entries[-1]
            if before.simultaneous and before.turn == update.turn:
                base = self._bases[-1]
        self._counts.append((len(self.variables), len(self.modal)))
        for name in mentioned(update):
            if name not in self._known:
                self._known.add(name)
                self.variables.append(name)
        if update.formula is not None and has_modality(update.formula):
            self.modal.append((update.audience, update.formula))
            names = minded(update.formula)
            if names:
                self.minded.append((serial, names))
        self._serials.append(serial)
        self._entries.append(update)
        self._bases.append(base)
        self._heard.append(heard)

    def is_fresh(self) -> bool:
        """Whether nothing has been computed or placed yet."""
        return not self._tracks and not len(self.space)

    def pin(self, others: Sequence[str]) -> None:
        """The variables of the entries, and some others, keep their places from now on.

        So it matters no more when an entry is taken out which of them is mentioned first.
        """
        self._pinned = dict.fromkeys((*self._pinned, *self.variables, *others))

    def count_with(self, others: Sequence[str]) -> int:
        """How many variables need a place if these are asked about."""
        return len({*self._pinned, *self.variables, *others})

    def place(self, others: Sequence[str]) -> bool:
        """Put the variables of the entries into the space in their order, and then some others.

        False if some of them stand there in another order already, or if there is no place left.
        """
        unplaced = self.variables[self._placed :]
        last = -1
        if self._placed:
            last = self.space.position(self.variables[self._placed - 1]) or 0
        for name in (*unplaced, *others):
            if name in self._pinned:
                continue
            position = self.space.position(name)
            if position is None:
                position = len(self.space)
                if position == self.space.capacity:
                    return False
                self.space.add(name)
            if position < last:
                return False
            last = position
        self._placed = len(self.variables)
        return True

    def states(
        self, perspectives: Sequence[Perspective], awareness: AwarenessAt
    ) -> dict[Perspective, State]:
        """The states after all entries. `perspectives` is closed: see `perspective.closure`.

        Every variable of the entries is in the space. Raises BoundExceeded, at the latest when all
        perspectives together have taken as many steps as one may.
        """
        self._open_tracks(perspectives)
        tracks = [(here, self._tracks[here]) for here in perspectives]
        first = min(len(track) for _, track in tracks) - 1
        for place in range(first, len(self._entries)):
            behind = [(here, track) for here, track in tracks if len(track) == place + 1]
            self._step(place, tracks, behind, awareness)
        return {here: track[-1] for here, track in tracks}

    def state_before(self, here: Perspective, serial: int) -> State:
        """The state of a perspective without the entries from this serial on."""
        return self._tracks[here][bisect_left(self._serials, serial)]

    def _step(
        self,
        place: int,
        tracks: Sequence[tuple[Perspective, list[State]]],
        behind: Sequence[tuple[Perspective, list[State]]],
        awareness: AwarenessAt,
    ) -> None:
        """Take those that are behind over one entry."""
        update = self._entries[place]
        base = self._bases[place]
        scene = Scene(
            self.space,
            {here: track[base] for here, track in tracks},
            self._heard[place],
            awareness(update),
        )
        after = [(track, stepped(update, track[-1], scene, here)) for here, track in behind]
        for track, state in after:
            track.append(state)
        if sum(track[-1].steps for _, track in tracks) > self._bounds.steps:
            raise BoundExceeded("steps", self._bounds.steps)

    def _open_tracks(self, perspectives: Sequence[Perspective]) -> None:
        if len(self._tracks) > max(TRACKS_MAX, len(perspectives)):
            self._tracks = {
                here: track for here, track in self._tracks.items() if here in perspectives
            }
        for here in perspectives:
            if here not in self._tracks:
                self._tracks[here] = self._longest_common(here)

    def _longest_common(self, here: Perspective) -> list[State]:
        """A track as far as some other perspective has kept the same entries."""
        best: list[State] = []
        for there, track in self._tracks.items():
            common = self._common_prefix(here ^ there)
            if min(common + 1, len(track)) > len(best):
                best = track[: common + 1]
        return best or [first_state(self.space.everything(), self._bounds.steps)]

    def _common_prefix(self, difference: frozenset[tuple[str, ...]]) -> int:
        """How many entries there are before one that tells such perspectives apart."""
        for place, update in enumerate(self._entries):
            if update.audience in difference or self._heard[place] & difference:
                return place
            if self.minded and self._serials[place] == self.minded[0][0]:
                return place
        return len(self._entries)


def stepped(update: Update, state: State, scene: Scene, here: Perspective) -> State:
    """What one entry makes of the state of a perspective; the state itself if it does nothing."""
    if not keeps(here, update.audience):
        return state
    if update.kind is UpdateKind.OBSERVES:
        assert update.agent is not None
        return observing(state, update.agent, update.variables, _positions(update, scene.space))
    if update.kind is UpdateKind.VARIABLE:
        return state
    assert update.formula is not None
    meter = Meter(state.steps_max, state.steps)
    try:
        worlds = _worlds(update.formula, scene, here, meter)
    except CommonKnowledgeUndefined:
        return state
    positions = _positions(update, scene.space)
    match update.kind:
        case UpdateKind.LAW | UpdateKind.ANNOUNCEMENT:
            law = state.law & worlds
            meter.spend(law.nodes, state.law.pairs_with(worlds))
            return (
                state if law.is_empty() else announced(state, law, worlds, positions, meter.spent)
            )
        case UpdateKind.RADICAL:
            return upgraded(state, worlds, False, positions, meter.spent)
        case UpdateKind.CONSERVATIVE:
            return upgraded(state, worlds, True, positions, meter.spent)
        case _:
            assert_never(update.kind)


def _worlds(formula: Formula, scene: Scene, here: Perspective, meter: Meter) -> WorldSet:
    """The truth set, with a short way for the literals that most entries are."""
    sign = literal(formula)
    if sign is None:
        return truth(formula, scene, here, meter)
    name, positive = sign
    return scene.space.where(name) if positive else ~scene.space.where(name)


def _positions(update: Update, space: WorldSpace) -> int:
    """The places of the update's variables, as bits."""
    return sum(1 << (space.position(name) or 0) for name in mentioned(update))
