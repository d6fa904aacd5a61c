"""Scorers: how a new fact stands to one of the same key with which it disagrees.

What was said with the atom wins over any scorer; agreement and late arrival are settled before one
is asked (`row.py`). A scorer that decides within the reducer must be a function of the log alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final

from processor.evidence.fact import Fact
from processor.evidence.granularity import is_finer
from schemas.evidence import Relation, Supersession


class Scorer(Protocol):
    """Tells the relation of a new fact to an active one."""

    def relation(self, new: Fact, old: Fact) -> Relation:
        """One of same_state, refines, supersedes, contradicts."""
        ...


@final
@dataclass(frozen=True, slots=True)
class RulesScorer:
    """The rules: granularity first, then the source and the order in time."""

    supersession: Supersession = Supersession.SAME_KEY_SAME_SOURCE

    def relation(self, new: Fact, old: Fact) -> Relation:
        """The relation by value, polarity, source and time order."""
        is_newer = old.is_older(new)
        same_source = new.source == old.source
        if new.polarity and old.polarity:
            if is_finer(new.sense, old.sense):
                return Relation.REFINES
            follows = same_source and is_newer and new.moment is not None
            if is_finer(old.sense, new.sense) and not follows:
                return Relation.SAME_STATE
        if new.record == old.record:
            return Relation.SUPERSEDES if is_newer else Relation.CONTRADICTS
        if self.supersession is not Supersession.EXPLICIT and same_source:
            return Relation.SUPERSEDES
        return Relation.CONTRADICTS


RULES = RulesScorer()
