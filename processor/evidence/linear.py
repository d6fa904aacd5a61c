"""A linear classifier, read from coefficients.

Only its numbers are learned. They are trained elsewhere (`replay.evaluate`) and kept as JSON, so
that reading them runs no code and applying them needs no library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final


class CoefficientsError(ValueError):
    """What is read are no coefficients of this classifier."""


@final
class Names(NamedTuple):
    """What the numbers stand for; `kind` is what labels are called in the stored form."""

    kind: str
    labels: tuple[str, ...]
    features: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Linear:
    """One row of weights and one offset for each label."""

    weights: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...]

    def best(self, seen: Sequence[float]) -> int:
        """The place of the label with the highest score, the first of equal ones."""
        scores = [
            offset + sum(weight * value for weight, value in zip(row, seen, strict=True))
            for row, offset in zip(self.weights, self.offsets, strict=True)
        ]
        return scores.index(max(scores))

    def to_values(self, names: Names) -> dict[str, object]:
        """The classifier as JSON values."""
        return {
            "features": list(names.features),
            names.kind: list(names.labels),
            "weights": [list(row) for row in self.weights],
            "offsets": list(self.offsets),
        }

    @classmethod
    def from_values(cls, values: object, names: Names) -> Linear:
        """The classifier again. Raises CoefficientsError that says what is wrong."""
        if not isinstance(values, Mapping):
            raise CoefficientsError("not an object")
        if values.get("features") != list(names.features):
            raise CoefficientsError("features: of another version")
        if values.get(names.kind) != list(names.labels):
            raise CoefficientsError(f"{names.kind}: of another version")
        weights, offsets = values.get("weights"), values.get("offsets")
        if not isinstance(weights, list) or len(weights) != len(names.labels):
            raise CoefficientsError(f"weights: not one row for each of the {names.kind}")
        rows = tuple(_numbers("weights", row, len(names.features)) for row in weights)
        return cls(rows, _numbers("offsets", offsets, len(names.labels)))


def _numbers(place: str, values: object, length: int) -> tuple[float, ...]:
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != length:
        raise CoefficientsError(f"{place}: not {length} numbers")
    if not all(type(value) in (int, float) for value in values):
        raise CoefficientsError(f"{place}: not {length} numbers")
    return tuple(float(value) for value in values)
