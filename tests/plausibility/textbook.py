"""The semantics as a textbook writes it: worlds one by one, and explicit plausibility preorders.

Slow and obvious on purpose, and independent of the product: it shares only the formulas and the
updates with it. Each agent has a relation on worlds: pairs (v, w) of one cell where v is at least
as plausible as w. A radical upgrade is lexicographic, a conservative one promotes the best
worlds of its formula, an announcement removes worlds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

from processor.engine.plausibility.bounds import CommonKnowledgeUndefined
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
)
from processor.engine.plausibility.update import Audience, Update, UpdateKind

World = frozenset[str]
Group = frozenset[str]
Pairs = frozenset[tuple[World, World]]
NOBODY: Group = frozenset()


@dataclass(frozen=True)
class PlausibilityModel:
    """Worlds, what each agent sees, and each agent's relation on the worlds of its cells."""

    worlds: frozenset[World]
    observed: dict[str, Group]
    at_least: dict[str, Pairs]

    def cell(self, agent: str, world: World) -> frozenset[World]:
        """The possible worlds the agent cannot tell from this one."""
        seen = self.observed[agent]
        return frozenset(other for other in self.worlds if other & seen == world & seen)

    def best(self, agent: str, worlds: frozenset[World]) -> frozenset[World]:
        """Those of the worlds to which no other of the worlds is strictly preferred."""
        at_least = self.at_least[agent]
        return frozenset(w for w in worlds if all((w, v) in at_least for v in worlds))


@dataclass
class Textbook:
    """A log read by the textbook. `raised` are expansions of awareness."""

    agents: Sequence[str]
    variables: Sequence[str]
    log: Sequence[Update]
    raised: Sequence[tuple[str, Audience, Audience, int]] = ()
    _models: dict[tuple[Group, int], PlausibilityModel] = field(default_factory=dict)

    def holds(self, formula: Formula) -> bool:
        """True at every possible world."""
        end = len(self.log)
        return self.model(NOBODY, end).worlds <= self.extension(formula, NOBODY, end)

    def possible(self, formula: Formula) -> bool:
        """True at some possible world."""
        end = len(self.log)
        return bool(self.model(NOBODY, end).worlds & self.extension(formula, NOBODY, end))

    def everything(self) -> frozenset[World]:
        """Every valuation of the variables."""
        values = product((False, True), repeat=len(self.variables))
        return frozenset(
            frozenset(name for name, true in zip(self.variables, each, strict=True) if true)
            for each in values
        )

    def model(self, group: Group, moment: int) -> PlausibilityModel:
        """The model in the perspective of a group, after so many updates."""
        if (group, moment) not in self._models:
            self._models[group, moment] = self._model(group, moment)
        return self._models[group, moment]

    def _model(self, group: Group, moment: int) -> PlausibilityModel:
        if moment == 0:
            worlds = self.everything()
            pairs = frozenset(product(worlds, worlds))
            return PlausibilityModel(
                worlds, dict.fromkeys(self.agents, NOBODY), dict.fromkeys(self.agents, pairs)
            )
        model = self.model(group, moment - 1)
        update = self.log[moment - 1]
        if not _heard(update.audience, group) or update.kind is UpdateKind.VARIABLE:
            return model
        if update.kind is UpdateKind.OBSERVES:
            return self._observing(model, update)
        assert update.formula is not None
        try:
            worlds = self.extension(update.formula, group, self._base(moment - 1), moment - 1)
        except CommonKnowledgeUndefined:
            return model
        if update.kind in (UpdateKind.LAW, UpdateKind.ANNOUNCEMENT):
            return _announced(model, worlds)
        return self._upgraded(model, worlds, update.kind is UpdateKind.CONSERVATIVE)

    def _base(self, moment: int) -> int:
        """Where the simultaneous announcements of the update's turn begin."""
        update = self.log[moment]
        while moment and update.simultaneous:
            before = self.log[moment - 1]
            if not before.simultaneous or before.turn != update.turn:
                break
            moment -= 1
        return moment

    def _observing(self, model: PlausibilityModel, update: Update) -> PlausibilityModel:
        assert update.agent is not None
        seen = model.observed[update.agent] | frozenset(update.variables)
        pairs = frozenset((v, w) for v, w in model.at_least[update.agent] if v & seen == w & seen)
        return PlausibilityModel(
            model.worlds,
            {**model.observed, update.agent: seen},
            {**model.at_least, update.agent: pairs},
        )

    def _upgraded(
        self, model: PlausibilityModel, worlds: frozenset[World], conservative: bool
    ) -> PlausibilityModel:
        at_least = {}
        for agent in self.agents:
            first = worlds
            if conservative:
                first = frozenset(
                    w
                    for w in worlds & model.worlds
                    if w in model.best(agent, model.cell(agent, w) & worlds)
                )
            at_least[agent] = frozenset(
                (v, w)
                for v, w in product(model.worlds, model.worlds)
                if v & model.observed[agent] == w & model.observed[agent]
                if (v in first, (v, w) in model.at_least[agent]) >= (w in first, True)
            )
        return PlausibilityModel(model.worlds, model.observed, at_least)

    def extension(
        self, formula: Formula, group: Group, moment: int, entry: int | None = None
    ) -> frozenset[World]:
        """The valuations at which the formula is true, seen by a group at a moment.

        `entry` is the place of the update that brings the formula; None for a question.
        """

        def of(part: Formula, group: Group = group) -> frozenset[World]:
            return self.extension(part, group, moment, entry)

        everything = self.everything()
        match formula:
            case Atom(name):
                return frozenset(w for w in everything if name in w)
            case Constant(value):
                return everything if value else frozenset()
            case Not(inner):
                return everything - of(inner)
            case And(parts):
                return frozenset.intersection(*[of(part) for part in parts])
            case Or(parts):
                return frozenset.union(*[of(part) for part in parts])
            case Implies(left, right):
                return (everything - of(left)) | of(right)
            case Iff(left, right):
                return everything - (of(left) ^ of(right))
            case Knows(agent, inner):
                model, inside = self.model(group | {agent}, moment), of(inner, group | {agent})
                return frozenset(w for w in everything if model.cell(agent, w) <= inside)
            case Believes(agent, inner):
                model, inside = self.model(group | {agent}, moment), of(inner, group | {agent})
                return frozenset(
                    w for w in everything if model.best(agent, model.cell(agent, w)) <= inside
                )
            case Common(agents, inner):
                return self._common(agents, inner, group, moment, entry)
            case Aware(agent, inner):
                aware = all(self._aware(agent, name, group, entry) for name in atoms(inner))
                return everything if aware else frozenset()
            case Explicit(agent, inner):
                return of(Knows(agent, inner)) & of(Aware(agent, inner))
        raise AssertionError(formula)

    def _common(
        self, agents: Iterable[str], inner: Formula, group: Group, moment: int, entry: int | None
    ) -> frozenset[World]:
        """Everybody knows, and everybody knows that, until nothing changes any more."""
        for update in self.log[:moment]:
            if _heard(update.audience, group) and not _heard(update.audience, frozenset(agents)):
                raise CommonKnowledgeUndefined(tuple(agents))
        model = self.model(group, moment)
        inside = self.extension(inner, group, moment, entry)
        known = self.everything()
        while True:
            deeper = frozenset(
                w
                for w in self.everything()
                if all(model.cell(agent, w) <= inside & known for agent in agents)
            )
            if deeper == known:
                return known
            known = deeper

    def _aware(self, agent: str, name: str, group: Group, entry: int | None) -> bool:
        turn_max = float("inf")
        if entry is not None:
            turn_max = self.log[entry].turn - self.log[entry].simultaneous
        return any(
            proposition == name
            and turn <= turn_max
            and _heard(audience, group | {agent})
            and (agents is None or agent in agents)
            for proposition, agents, audience, turn in self.raised
        )


def _announced(model: PlausibilityModel, worlds: frozenset[World]) -> PlausibilityModel:
    left = model.worlds & worlds
    if not left:
        return model
    at_least = {
        agent: frozenset((v, w) for v, w in pairs if v in left and w in left)
        for agent, pairs in model.at_least.items()
    }
    return PlausibilityModel(left, model.observed, at_least)


def _heard(audience: Audience, group: Group) -> bool:
    return audience is None or group <= set(audience)
