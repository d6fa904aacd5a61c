"""The tests that the papers use, from SciPy where it has them.

Every random choice comes from the seed, so the same outcomes give the same table.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple, final

from replay.evaluate.extra import needed

RESAMPLES = 10_000
LEVEL = 0.95


@final
class Interval(NamedTuple):
    """A mean with its bootstrap percentile interval."""

    mean: float
    low: float
    high: float


@final
class Paired(NamedTuple):
    """One arm less another, item by item; the exact McNemar test only if all figures are 0 or 1."""

    pairs: int
    difference: Interval
    mcnemar_p: float | None
    permutation_p: float
    wilcoxon_p: float


def interval(figures: Sequence[float], seed: int) -> Interval:
    """The mean and its percentile bootstrap interval, B = 10,000.

    A resample is decided by how often each distinct figure is drawn, which is multinomial: the same
    distribution as drawing item by item, at a cost that grows with the distinct figures alone.
    """
    assert figures, "an interval of nothing"
    numpy = needed("numpy")
    distinct, counts = numpy.unique(numpy.asarray(figures, dtype=float), return_counts=True)
    mean = fmean(figures)
    if len(distinct) == 1:
        return Interval(mean, mean, mean)
    random = numpy.random.default_rng(seed)
    drawn = random.multinomial(len(figures), counts / len(figures), size=RESAMPLES)
    low, high = numpy.quantile(drawn @ distinct / len(figures), _tails())
    return Interval(mean, float(low), float(high))


def paired(ours: Sequence[float], theirs: Sequence[float], seed: int) -> Paired:
    """Compare two arms on the same items, in the same order."""
    assert len(ours) == len(theirs)
    differences = [one - other for one, other in zip(ours, theirs, strict=True)]
    is_binary = all(figure in (0, 1) for figure in (*ours, *theirs))
    return Paired(
        len(differences),
        interval(differences, seed),
        mcnemar(ours, theirs) if is_binary else None,
        _permutation(differences, seed),
        _wilcoxon(differences),
    )


def mcnemar(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The exact test: whether the pairs that differ favour one side."""
    wins = sum(one > other for one, other in zip(ours, theirs, strict=True))
    losses = sum(one < other for one, other in zip(ours, theirs, strict=True))
    if not wins + losses:
        return 1.0
    return float(needed("scipy.stats").binomtest(wins, wins + losses).pvalue)


def holm(ps: Sequence[float]) -> list[float]:
    """The p values of one family of tests, adjusted by Holm's step-down procedure."""
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda each: (ps[each], each))):
        highest = max(highest, min(1.0, ps[place] * (len(ps) - rank)))
        adjusted[place] = highest
    return adjusted


def kappa(ours: Sequence[bool], gold: Sequence[bool]) -> float:
    """Cohen's kappa of two yes or no decisions: agreement beyond chance, 1 if all agree."""
    total = len(gold)
    agreed = sum(one == other for one, other in zip(ours, gold, strict=True)) / total
    yes = sum(ours) / total * (sum(gold) / total)
    chance = yes + (1 - sum(ours) / total) * (1 - sum(gold) / total)
    return 1.0 if chance == 1 else (agreed - chance) / (1 - chance)


def _permutation(differences: Sequence[float], seed: int) -> float:
    """Flipping the sides of pairs at random; a pair without a difference changes nothing."""
    numpy = needed("numpy")
    unequal = numpy.asarray([each for each in differences if each], dtype=float)
    if not len(unequal):
        return 1.0
    if len(unequal) == 1:
        return 1.0  # one pair, flipped or not, is as far from nothing either way

    def mean_of(ours: Any, theirs: Any, axis: int) -> Any:
        return numpy.mean(ours - theirs, axis=axis)

    tested = needed("scipy.stats").permutation_test(
        (unequal, numpy.zeros_like(unequal)),
        mean_of,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=500,
        rng=numpy.random.default_rng(seed),
    )
    return float(tested.pvalue)


def _wilcoxon(differences: Sequence[float]) -> float:
    """The signed-rank test; pairs without a difference are left out."""
    unequal = [each for each in differences if each]
    if not unequal:
        return 1.0
    return float(needed("scipy.stats").wilcoxon(unequal).pvalue)


def _tails() -> tuple[float, float]:
    return ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
