"""A learned scorer: a linear classifier over what the rules look at, read from coefficients.

It is trained by `replay.evaluate.relation_scorer`. It serves measurements and whoever writes
relations into the log; inside the reducer there are the rules alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

from processor.evidence.fact import Fact
from processor.evidence.granularity import is_finer
from processor.evidence.linear import Linear, Names
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
NAMES = Names("relations", tuple(relation.value for relation in RELATIONS), FEATURES)
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


@final
@dataclass(frozen=True, slots=True)
class LearnedScorer:
    """Tells a relation by what is known of a pair."""

    linear: Linear

    def relation(self, new: Fact, old: Fact) -> Relation:
        """The relation with the highest score, the first of equal ones."""
        return RELATIONS[self.linear.best(features(new, old))]

    def to_values(self) -> dict[str, object]:
        """The scorer as JSON values."""
        return self.linear.to_values(NAMES)

    @classmethod
    def from_values(cls, values: object) -> LearnedScorer:
        """The scorer again. Raises CoefficientsError that says what is wrong."""
        return cls(Linear.from_values(values, NAMES))
