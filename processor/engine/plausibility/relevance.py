"""Which entries of the log an answer can depend on.

A conversation without formulas fills the log with bare entries, one variable each. A variable is
*inert* if it stands only in bare entries, always with the same sign, and nobody observes it.

Leaving the entries of an inert variable out changes no answer about the others. Whatever values the
others have, the world where it has its sign is possible and at least as plausible as the one where
it has not; and between two worlds where it has its sign the others alone decide, because its
entries favour both or, if conservative, the better one. So the best worlds of any set are the same
as far as the others go, and replay skips the entries.

An announcement or a radical upgrade puts the sign into all best worlds for good, so a question
about such a variable may meet its entries at the end. With conservative entries alone it depends on
what became of the worlds they favoured; such a variable is *fragile*, and a question about it
replays its entries in their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import final

from processor.engine.plausibility.beliefs import Cells
from processor.engine.plausibility.formula import literal
from processor.engine.plausibility.log import UpdateLog
from processor.engine.plausibility.perspective import Perspective, keeps
from processor.engine.plausibility.update import (
    Audience,
    Update,
    UpdateKind,
    includes,
    mentioned,
)


@final
class _Uses:
    """How often the live entries use one variable, and the serials of its bare ones."""

    __slots__ = ("bare", "negative", "other", "positive")

    def __init__(self) -> None:
        self.positive = 0
        self.negative = 0
        self.other = 0
        self.bare: list[int] = []

    def is_inert(self) -> bool:
        return self.other == 0 and (self.positive == 0 or self.negative == 0)


@final
class Relevance:
    """An index of the log by variable, brought up to date when a question is asked.

    `declared` are the variables of the live entries of kind variable, and how many those are;
    `private` the audiences of the live entries that not everyone heard, and their serials.
    """

    def __init__(self) -> None:
        self.declared: dict[str, int] = {}
        self.private: dict[tuple[str, ...], list[int]] = {}
        self._observes: dict[str, list[Update]] = {}
        self._uses: dict[str, _Uses] = {}
        self._seen: list[Update | None] = []
        self._was_inert: dict[str, bool] = {}

    def sync(self, log: UpdateLog) -> tuple[int, bool]:
        """Index what changed in the log since the last call.

        Returns the lowest serial that may have changed, and whether some entry below it is relevant
        now and was not before, or the other way round.
        """
        lowest = min(log.settle(), len(self._seen))
        self._was_inert.clear()
        for serial in range(len(self._seen) - 1, lowest - 1, -1):
            update = self._seen.pop()
            if update is not None:
                self._remove(serial, update)
        for serial in range(lowest, len(log.entries)):
            update = log.entries[serial]
            self._seen.append(update)
            if update is not None:
                self._add(serial, update)
        return lowest, any(
            uses.is_inert() is not was_inert and bool(uses.bare) and uses.bare[0] < lowest
            for name, was_inert in self._was_inert.items()
            if (uses := self._uses.get(name)) is not None
        )

    def is_relevant(self, update: Update) -> bool:
        """Whether replay must go through the entry."""
        if update.kind is UpdateKind.VARIABLE:
            return False
        sign = None if update.formula is None else literal(update.formula)
        return sign is None or not self._uses[sign[0]].is_inert()

    def seen(self, agent: str, here: Perspective) -> Cells:
        """The variables that the agent observes, in a perspective."""
        entries = [each for each in self._observes.get(agent, ()) if keeps(here, each.audience)]
        return tuple(sorted({name for each in entries for name in each.variables}))

    def heard_before(self, serial: int) -> Perspective:
        """The private audiences of the live entries before this one."""
        return frozenset(
            audience for audience, serials in self.private.items() if serials[0] < serial
        )

    def inert_entries(self, variables: Iterable[str]) -> Iterator[Update]:
        """The entries of those of the variables that are inert, variable by variable."""
        for name in variables:
            uses = self._uses.get(name)
            if uses is not None and uses.is_inert():
                for serial in uses.bare:
                    update = self._seen[serial]
                    assert update is not None
                    yield update

    def fragile(self, variables: Iterable[str]) -> list[str]:
        """Those inert variables that somebody may have only conservative entries of."""
        found: list[str] = []
        for name in variables:
            weak: dict[Audience, None] = {}
            strong: dict[Audience, None] = {}
            for update in self.inert_entries((name,)):
                is_weak = update.kind is UpdateKind.CONSERVATIVE
                (weak if is_weak else strong)[update.audience] = None
            if not all(any(includes(other, one) for other in strong) for one in weak):
                found.append(name)
        return found

    def _add(self, serial: int, update: Update) -> None:
        if update.audience is not None:
            self.private.setdefault(update.audience, []).append(serial)
        if update.agent is not None:
            self._observes.setdefault(update.agent, []).append(update)
        if update.kind is UpdateKind.VARIABLE:
            for name in mentioned(update):
                self.declared[name] = self.declared.get(name, 0) + 1
            return
        sign = None if update.formula is None else literal(update.formula)
        if sign is None:
            for name in mentioned(update):
                self._use(name).other += 1
            return
        uses = self._use(sign[0])
        uses.bare.append(serial)
        if sign[1]:
            uses.positive += 1
        else:
            uses.negative += 1

    def _remove(self, serial: int, update: Update) -> None:
        """Undo `_add`; called from the highest serial down."""
        if update.audience is not None:
            self.private[update.audience].pop()
            if not self.private[update.audience]:
                del self.private[update.audience]
        if update.agent is not None:
            self._observes[update.agent].pop()
        if update.kind is UpdateKind.VARIABLE:
            for name in mentioned(update):
                self.declared[name] -= 1
                if not self.declared[name]:
                    del self.declared[name]
            return
        sign = None if update.formula is None else literal(update.formula)
        if sign is None:
            for name in mentioned(update):
                self._use(name).other -= 1
            return
        uses = self._use(sign[0])
        last = uses.bare.pop()
        assert last == serial, "entries leave in the opposite order"
        if sign[1]:
            uses.positive -= 1
        else:
            uses.negative -= 1

    def _use(self, name: str) -> _Uses:
        """The uses of a variable, which are about to change."""
        uses = self._uses.get(name)
        if uses is None:
            uses = self._uses[name] = _Uses()
        self._was_inert.setdefault(name, uses.is_inert())
        return uses
