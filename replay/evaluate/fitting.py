"""Fits a linear classifier with scikit-learn; what comes of it are numbers (`Linear`)."""

from __future__ import annotations

from collections.abc import Sequence

from processor.evidence.linear import Linear
from replay.evaluate.extra import needed

_NEVER = -1e9
"""The offset of a label that no example has."""


def fit(seen: Sequence[Sequence[float]], labels: Sequence[int], count: int) -> Linear:
    """Logistic regression over at least two of `count` labels; the same data give the same numbers.

    Raises ExtraMissing.
    """
    model = needed("sklearn.linear_model").LogisticRegression(
        C=10.0, max_iter=2_000, class_weight="balanced"
    )
    model.fit(seen, labels)
    known = [int(label) for label in model.classes_]
    rows, offsets = model.coef_.tolist(), model.intercept_.tolist()
    if len(known) == 2:  # two classes share one row
        rows, offsets = [[-each for each in rows[0]], rows[0]], [-offsets[0], offsets[0]]
    never = (0.0,) * len(rows[0])
    return Linear(
        tuple(tuple(rows[known.index(i)]) if i in known else never for i in range(count)),
        tuple(offsets[known.index(i)] if i in known else _NEVER for i in range(count)),
    )
