"""How well an arm's abstentions agree with those that should be, beyond chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

from replay.evaluate.benchmark import Scores
from replay.evaluate.statistics import kappa


@final
class Abstentions(NamedTuple):
    """Of an arm's items that were answered: how many it abstained on, should have, and both."""

    asked: int
    ours: int
    gold: int
    both: int
    kappa: float


def abstentions(scored: Mapping[tuple[str, str], Scores]) -> dict[str, Abstentions]:
    """By arm, from the measures `abstained` and `should_abstain` of the items that have them.

    A question without an answer has neither, and an arm without an answer is left out.
    """
    answered: dict[str, list[Scores]] = {}
    for (_, arm), scores in scored.items():
        if "abstained" in scores:
            answered.setdefault(arm, []).append(scores)
    return {arm: _agreement(of_arm) for arm, of_arm in answered.items()}


def _agreement(answered: Sequence[Scores]) -> Abstentions:
    ours = [scores["abstained"] == 1 for scores in answered]
    gold = [scores["should_abstain"] == 1 for scores in answered]
    both = sum(one and other for one, other in zip(ours, gold, strict=True))
    return Abstentions(len(answered), sum(ours), sum(gold), both, kappa(ours, gold))
