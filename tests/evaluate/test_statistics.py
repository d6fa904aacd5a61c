"""The statistics: against SciPy where it computes the same, and against tables worked by hand."""

from __future__ import annotations

import numpy
import pytest
from scipy import stats

from replay.evaluate.statistics import Interval, holm, interval, kappa, mcnemar, paired

OURS = [1.0] * 18 + [0.0] * 12
THEIRS = [1.0] * 10 + [0.0] * 8 + [1.0] * 2 + [0.0] * 10


def test_the_exact_mcnemar_test_is_the_binomial_test_of_the_pairs_that_differ() -> None:
    """8 wins against 2 losses: twice the tail of a fair coin."""
    assert mcnemar(OURS, THEIRS) == pytest.approx(2 * (1 + 10 + 45) / 2**10)
    assert mcnemar(OURS, OURS) == 1


def test_the_interval_is_the_one_that_scipy_draws_item_by_item() -> None:
    """Drawing distinct figures by how often they come is the same bootstrap, only cheaper."""
    figures = [*OURS, 2.5, 2.5, 7.0]
    ours = interval(figures, seed=1)
    theirs = stats.bootstrap(
        (figures,), numpy.mean, n_resamples=10_000, method="percentile", rng=2
    ).confidence_interval
    assert ours.mean == pytest.approx(sum(figures) / len(figures))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.03)


def test_the_seed_decides_every_figure() -> None:
    """The same seed gives the same interval and tests, another one others."""
    assert paired(OURS, THEIRS, 3) == paired(OURS, THEIRS, 3)
    figures = [place**1.5 for place in range(40)]
    assert interval(figures, 3) != interval(figures, 4)


def test_a_figure_that_never_varies_has_no_width() -> None:
    """An interval of equal figures is that figure."""
    assert interval([0.1] * 7, 0) == Interval(0.1, 0.1, 0.1)


def test_pairs_without_a_difference_speak_for_neither_side() -> None:
    """Equal arms have difference 0 and every p value 1."""
    tested = paired(OURS, OURS, 0)
    assert tested.difference == Interval(0, 0, 0)
    assert (tested.mcnemar_p, tested.permutation_p, tested.wilcoxon_p) == (1, 1, 1)


def test_the_permutation_test_agrees_with_the_exact_one_on_binary_pairs() -> None:
    """Flipping pairs at random is the exact McNemar test where figures are 0 or 1."""
    tested = paired(OURS, THEIRS, 0)
    assert tested.permutation_p == pytest.approx(mcnemar(OURS, THEIRS), abs=0.02)


def test_figures_that_are_not_binary_have_no_mcnemar_test() -> None:
    """The other tests remain."""
    tested = paired([0.5, 1, 3], [0, 1, 2.5], 0)
    assert tested.mcnemar_p is None
    assert tested.difference.mean == pytest.approx(1 / 3)


def test_holm_multiplies_the_smallest_by_the_number_of_tests_and_never_goes_down() -> None:
    """0.01, 0.04, 0.03 become 0.03, 0.06, 0.06; nothing passes 1."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []


def test_kappa_is_agreement_beyond_chance() -> None:
    """Full agreement is 1, always saying yes is 0, and the table 20 5 10 15 is 0.4."""
    yes, no = [True], [False]
    ours = yes * 25 + no * 25
    gold = yes * 20 + no * 5 + yes * 10 + no * 15
    assert kappa(gold, gold) == 1
    assert kappa(yes * 50, gold) == pytest.approx(0)
    assert kappa(ours, gold) == pytest.approx(0.4)
