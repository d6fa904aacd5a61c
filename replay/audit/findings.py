"""What an audit adds up while it goes through the conversations of a store."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import final

from replay.audit.derived import Stray
from replay.divergence import Divergence


@final
@dataclass(slots=True)
class Findings:
    """What the audit of some conversations found.

    `missing` and `strays` are derived rows that were not found, or not expected, at their place:
    who has those of all conversations can tell which of them are the same row. `events` were read,
    `not_folded` of them could not be folded. `rules` counts events by rules version.
    """

    divergences: list[Divergence] = field(default_factory=list)
    missing: list[Stray] = field(default_factory=list)
    strays: list[Stray] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    events: int = 0
    turns: int = 0
    not_folded: int = 0
    rules: Counter[int] = field(default_factory=Counter)

    def absorb(self, other: Findings) -> None:
        """Add what was found elsewhere."""
        self.divergences += other.divergences
        self.missing += other.missing
        self.strays += other.strays
        self.notes += other.notes
        self.events += other.events
        self.turns += other.turns
        self.not_folded += other.not_folded
        self.rules += other.rules
