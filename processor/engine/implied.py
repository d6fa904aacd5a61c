"""What follows from a turn beyond its operations: the seam to projections of the same log.

The engine knows no projection. It asks, once the operations of a turn are applied, and does what is
answered with the means of its own operations, in the same turn; the cause of such a change is
`supersedes`, not the name of an operation, so that it can be told from one that somebody made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, final

from processor.engine.record import Record
from processor.engine.state import State
from schemas.derived import Note
from schemas.evidence import Supersession

SUPERSEDES = "supersedes"


@final
class ImpliedRevision(NamedTuple):
    """A record is revised by another one although no operation says so."""

    target: str
    by: str


@final
class ImpliedDispute(NamedTuple):
    """A record of this turn and the ones it contradicts."""

    record: str
    contradicts: tuple[str, ...]


@final
class Implied(NamedTuple):
    """What follows, in the order in which it is applied."""

    revisions: tuple[ImpliedRevision, ...] = ()
    disputes: tuple[ImpliedDispute, ...] = ()
    notes: tuple[Note, ...] = ()


NOTHING_IMPLIED = Implied()

Implies: TypeAlias = Callable[[State, Sequence[Record]], Implied]
"""Told the state after a turn's operations and its new records; may be asked more than once."""


@final
class AtomSource(NamedTuple):
    """What a turn with atoms said beside its records.

    Who spoke in which role, the turn that was meant (another one if a missing turn was filled),
    what it took then that a value replaces another, the records with values of the same keys
    that the policy then in force did not let that role revise, and pairs of a new record and one
    with a later value whose role it did not let revise the new one.
    """

    speaker: str
    role: str
    told_turn: int
    supersession: Supersession
    protected: tuple[str, ...] = ()
    powerless: tuple[tuple[str, str], ...] = ()
