"""The conflict tier of a stream, from its structure alone (appendix H).

Nothing here looks at words: only at how many atoms and sources there are, and at whether values of
one key differ, come back, or narrow each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple, TypeAlias, final

from processor.evidence.fact import Fact
from processor.evidence.granularity import is_finer
from processor.evidence.linear import Linear, Names


class Tier(StrEnum):
    """Where the conflict of a stream lives."""

    MONOTONIC = "monotonic"
    REVERTED_REVERT = "reverted_revert"
    CROSS_SOURCE_CONFLICT = "cross_source_conflict"
    REFINES = "refines"


@final
class Structure(NamedTuple):
    """What the structure of a stream about one key says; the numbers a classifier is given."""

    events: int
    atoms: int
    values: int
    changes: int
    has_reversal: bool
    has_denial: bool
    narrows: bool
    sources: int
    sources_differ: bool


TellTier: TypeAlias = Callable[[Structure], Tier]
"""Tells the tier: by the rules (`tier_of`), or by what was learned."""
TIERS = tuple(Tier)
NAMES = Names("tiers", tuple(tier.value for tier in TIERS), Structure._fields)
_COUNTED_MAX = 10


def structure_of(facts: Sequence[Fact]) -> Structure:
    """The structure of the facts of one key, in the order of their valid times."""
    ordered = sorted(facts, key=lambda fact: (fact.moment or 0, fact.told_turn, fact.place))
    told = [(fact.said, fact.polarity) for fact in ordered]
    runs = [each for place, each in enumerate(told) if place == 0 or each != told[place - 1]]
    last = {fact.source: (fact.said, fact.polarity) for fact in ordered}
    return Structure(
        events=len(dict.fromkeys(fact.record for fact in facts)),
        atoms=len(facts),
        values=len(dict.fromkeys(told)),
        changes=len(runs) - 1,
        has_reversal=len(dict.fromkeys(runs)) < len(runs),
        has_denial=any(not polarity for _, polarity in told),
        narrows=any(is_finer(after, before) for (before, _), (after, _) in pairwise(runs)),
        sources=len(last),
        sources_differ=_differ(list(last.values())),
    )


def tier_of(structure: Structure) -> Tier:
    """The tier by rules: a value that returns, then sources that differ, then narrowing."""
    if structure.has_reversal:
        return Tier.REVERTED_REVERT
    if structure.sources_differ:
        return Tier.CROSS_SOURCE_CONFLICT
    if structure.narrows:
        return Tier.REFINES
    return Tier.MONOTONIC


@final
@dataclass(frozen=True, slots=True)
class LearnedTiers:
    """Tells the tier by learned coefficients (`replay.evaluate.tier_classifier`)."""

    linear: Linear

    def tier(self, structure: Structure) -> Tier:
        """The tier with the highest score, the first of equal ones."""
        return TIERS[self.linear.best(numbers_of(structure))]

    def to_values(self) -> dict[str, object]:
        """The classifier as JSON values."""
        return self.linear.to_values(NAMES)

    @classmethod
    def from_values(cls, values: object) -> LearnedTiers:
        """The classifier again. Raises CoefficientsError that says what is wrong."""
        return cls(Linear.from_values(values, NAMES))


def numbers_of(structure: Structure) -> tuple[float, ...]:
    """The structure as numbers from 0 to 1, in the order of its fields; ten and more are alike."""
    return tuple(
        float(each) if isinstance(each, bool) else min(each, _COUNTED_MAX) / _COUNTED_MAX
        for each in structure
    )


def _differ(last: list[tuple[str, bool]]) -> bool:
    """Whether what the sources said last cannot all be in force."""
    given = list(dict.fromkeys(said for said, polarity in last if polarity))
    denied = frozenset(said for said, polarity in last if not polarity)
    if not denied.isdisjoint(given):
        return True
    by_length = sorted(given, key=len)
    return not all(is_finer(longer, shorter) for shorter, longer in pairwise(by_length))
