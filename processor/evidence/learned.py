"""A learned scorer: a linear classifier over what the rules look at, read from coefficients.

Only its numbers are learned. They are trained elsewhere (`replay.evaluate.relation_scorer`) and
kept as JSON, so that reading them runs no code and applying them needs no library. It serves
measurements and whoever writes relations into the log; inside the reducer there are the rules
alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from processor.evidence.fact import Fact
from processor.evidence.granularity import is_finer
from schemas.evidence import Relation

RELATIONS = (
    Relation.SAME_STATE,
    Relation.REFINES,
    Relation.SUPERSEDES,
    Relation.CONTRADICTS,
    Relation.UNRELATED,
)
FEATURES = (
    "same_value",
    "same_polarity",
    "new_is_finer",
    "old_is_finer",
    "shared_words",
    "new_words",
    "old_words",
    "both_numbers",
    "same_source",
    "same_role",
    "same_record",
    "is_newer",
    "is_older",
    "new_is_dated",
    "old_is_dated",
)
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"[0-9]")


def features(new: Fact, old: Fact) -> tuple[float, ...]:
    """What is known of a pair of facts of one key, in the order of FEATURES."""
    words, other = _WORD.findall(new.said), _WORD.findall(old.said)
    shared = len([word for word in dict.fromkeys(words) if word in other])
    seen = (
        new.said == old.said,
        new.polarity == old.polarity,
        is_finer(new.said, old.said),
        is_finer(old.said, new.said),
        shared / max(1, len(dict.fromkeys([*words, *other]))),
        min(len(words), 20) / 20,
        min(len(other), 20) / 20,
        bool(_NUMBER.search(new.said) and _NUMBER.search(old.said)),
        new.source == old.source,
        new.role == old.role,
        new.record == old.record,
        old.is_older(new),
        new.is_older(old),
        new.moment is not None,
        old.moment is not None,
    )
    return tuple(float(each) for each in seen)


class CoefficientsError(ValueError):
    """What is read are no coefficients of this scorer."""


@final
@dataclass(frozen=True, slots=True)
class LearnedScorer:
    """One row of weights and one offset for each of RELATIONS."""

    weights: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...]

    def relation(self, new: Fact, old: Fact) -> Relation:
        """The relation with the highest score, the first of equal ones."""
        seen = features(new, old)
        scores = [
            offset + sum(weight * value for weight, value in zip(row, seen, strict=True))
            for row, offset in zip(self.weights, self.offsets, strict=True)
        ]
        return RELATIONS[scores.index(max(scores))]

    def to_values(self) -> dict[str, object]:
        """The scorer as JSON values."""
        return {
            "features": list(FEATURES),
            "relations": list(RELATIONS),
            "weights": [list(row) for row in self.weights],
            "offsets": list(self.offsets),
        }

    @classmethod
    def from_values(cls, values: object) -> LearnedScorer:
        """The scorer again. Raises CoefficientsError that names what is wrong."""
        if not isinstance(values, Mapping):
            raise CoefficientsError("not an object")
        if values.get("features") != list(FEATURES):
            raise CoefficientsError("features: of another version")
        if values.get("relations") != [relation.value for relation in RELATIONS]:
            raise CoefficientsError("relations: of another version")
        weights, offsets = values.get("weights"), values.get("offsets")
        if not isinstance(weights, list) or len(weights) != len(RELATIONS):
            raise CoefficientsError("weights: not one row for each relation")
        rows = tuple(_numbers("weights", row, len(FEATURES)) for row in weights)
        return cls(rows, _numbers("offsets", offsets, len(RELATIONS)))


def _numbers(place: str, values: object, length: int) -> tuple[float, ...]:
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != length:
        raise CoefficientsError(f"{place}: not {length} numbers")
    if not all(type(value) in (int, float) for value in values):
        raise CoefficientsError(f"{place}: not {length} numbers")
    return tuple(float(value) for value in values)
