"""The conflict tier of a stream, from its structure alone (appendix H).

Nothing here looks at words: only at how many atoms and sources there are, and at whether values of
one key differ, come back, or narrow each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import combinations, pairwise
from typing import NamedTuple, final

from processor.evidence.fact import Fact
from processor.evidence.granularity import is_finer


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


def _differ(last: list[tuple[str, bool]]) -> bool:
    """Whether what the sources said last cannot all be in force."""
    return any(_exclude(one, other) for one, other in combinations(last, 2))


def _exclude(one: tuple[str, bool], other: tuple[str, bool]) -> bool:
    if one[1] and other[1]:
        same = one[0] == other[0] or is_finer(one[0], other[0]) or is_finer(other[0], one[0])
        return not same
    return one[1] != other[1] and one[0] == other[0]
