"""Records (arguments) and what happens to them.

A record is never deleted. What it was introduced with stays as it is; what happens to it later is
appended to its trail, so standing, attacks and commitments can all be told from the two together.
The other fields repeat that in a form that makes a verdict one lookup.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, final

from processor.engine.plausibility.formula import Formula
from schemas.derived import Standing
from schemas.evidence import Atom

Audience = tuple[str, ...] | None
"""Who hears an utterance, in ascending order; None is everyone, later agents included."""


class RecordKind(StrEnum):
    """How a record came into the map."""

    OBSERVATION = "observation"
    HYPOTHESIS = "hypothesis"
    EVIDENCE = "evidence"
    PREMISE = "premise"
    DECISION = "decision"


class LinkKind(StrEnum):
    """Why a record rests on another: cited when made, added by support, added by resolve."""

    PREMISE = "premise"
    CORROBORATION = "corroboration"
    SUBSUMPTION = "subsumption"


class Happening(StrEnum):
    """What one entry of a trail says."""

    LINKED = "linked"
    ATTACKED = "attacked"
    STANDING = "standing"
    COMMITMENT_ENDED = "commitment_ended"
    RECLASSIFIED = "reclassified"
    DISSENT = "dissent"
    ALERTED = "alerted"


class TrailEntry(NamedTuple):
    """One thing that happened to a record: what, when, through which operation, and by whom.

    `by` is the record it happened through, if any. `value` is the new standing, the link's kind,
    the proposition that reclassified the record, or the reason of a dissent.
    """

    happening: Happening
    turn: int
    op: str
    by: str | None
    speaker: str
    value: str | None


@final
class Record:
    """One claim in the map, with the links to what it rests on and back.

    `position` counts the records introduced before it; `op` is the operation that introduced it;
    `answers` are the problems it was put forward for; `role` is the one in which it was said, None
    under rules without policies. The first of its `supports` are its `premises`. `dependents` are
    the records that rest on it, `corroborated` those of them that do so by support only.

    Two records with equal claims are two records. Only a `Transition` changes one.
    """

    __slots__ = (
        "answers",
        "atoms",
        "audience",
        "claim",
        "committed",
        "core_grounded",
        "corroborated",
        "dependents",
        "formula",
        "grounded",
        "id",
        "kind",
        "op",
        "position",
        "role",
        "speaker",
        "standing",
        "supports",
        "trail",
        "turn",
    )

    def __init__(
        self,
        id: str,
        claim: str,
        kind: RecordKind,
        op: str,
        speaker: str,
        turn: int,
        audience: Audience,
        formula: Formula | None,
        atoms: tuple[Atom, ...],
        answers: tuple[str, ...],
        supports: tuple[Record, ...],
        position: int,
        role: str | None,
    ) -> None:
        self.id = id
        self.claim = claim
        self.kind = kind
        self.op = op
        self.speaker = speaker
        self.turn = turn
        self.audience = audience
        self.formula = formula
        self.atoms = atoms
        self.answers = answers
        self.position = position
        self.role = role
        self.trail: list[TrailEntry] = _NO_TRAIL
        # Below: told by the above, kept for speed.
        self.supports: tuple[Record, ...] | list[Record] = supports  # a list once it grows
        self.dependents: list[Record] = NO_RECORDS
        self.corroborated: tuple[Record, ...] = ()
        self.standing = Standing.ACTIVE
        self.committed = True
        self.grounded = self.core_grounded = True
        for support in supports:
            if not support.grounded:
                self.grounded = False
                self.core_grounded = self.core_grounded and support.core_grounded

    def add_support(self, support: Record, *, corroborates: bool) -> None:
        """Let this record rest on another one, on both sides of the link."""
        if isinstance(self.supports, tuple):
            self.supports = [*self.supports, support]
        else:
            self.supports.append(support)
        support.add_dependent(self)
        if corroborates:
            support.corroborated += (self,)

    def drop_support(self, *, corroborates: bool) -> None:
        """Take back the support that was added last."""
        assert isinstance(self.supports, list), "it was made when the support was added"
        support = self.supports.pop()
        support.dependents.pop()
        if corroborates:
            support.corroborated = support.corroborated[:-1]

    def add_dependent(self, dependent: Record) -> None:
        """Note that another record rests on this one."""
        if self.dependents is NO_RECORDS:
            self.dependents = [dependent]
        else:
            self.dependents.append(dependent)

    def add_to_trail(self, entry: TrailEntry) -> None:
        """Note that something happened to this record."""
        if self.trail is _NO_TRAIL:
            self.trail = [entry]
        else:
            self.trail.append(entry)

    @property
    def stands(self) -> bool:
        """Whether the record is in good standing, that is in S_t."""
        return self.standing is Standing.ACTIVE or self.standing is Standing.RESOLVED

    @property
    def is_decision(self) -> bool:
        """Whether somebody may act on it: a decision record, or a record that was resolved."""
        return self.kind is RecordKind.DECISION or self.standing is Standing.RESOLVED

    def premises(self) -> Sequence[Record]:
        """What it was made to rest on; links that came later stand in its trail."""
        if isinstance(self.supports, tuple):
            return self.supports
        return self.supports[: len(self.supports) - len(self.happened(Happening.LINKED))]

    def links(self) -> tuple[tuple[Record, LinkKind], ...]:
        """The support links in the order they were made, each supporting record once."""
        kinds = [LinkKind.PREMISE] * len(self.premises())
        for entry in self.happened(Happening.LINKED):
            assert entry.value is not None
            kinds.append(LinkKind(entry.value))
        return tuple(zip(self.supports, kinds, strict=True))

    def happened(self, happening: Happening) -> tuple[TrailEntry, ...]:
        """The entries of the trail that say this, in order."""
        return tuple(entry for entry in self.trail if entry.happening is happening)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.id} {self.standing}>"


NO_RECORDS: list[Record] = []
_NO_TRAIL: list[TrailEntry] = []
# Most records rest on little and nothing happens to them: they share these, which stay empty.
