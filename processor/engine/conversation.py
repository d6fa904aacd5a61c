"""One conversation as far as its log is folded."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import final

from processor.engine.digest import GENESIS, StateDigest
from processor.engine.implied import AtomSource
from processor.engine.mark import Mark
from processor.engine.plausibility.bounds import Bounds
from processor.engine.record import NO_RECORDS
from processor.engine.state import State
from schemas.derived import MISSING_TURNS_MAX, Coverage

_COMPLETE = Coverage(complete=True)


@final
@dataclass(slots=True)
class Conversation:
    """The state and the place in the log.

    `utterances` maps every utterance id in the log to its digest. `missing` maps each
    turn that could not be interpreted, and was not filled since, to its utterance id; turns ascend.
    `atom_sources` says of each turn whose records carry atoms who told them. `projection` is what a
    projection of the log remembers between events; it can be made up again from the rest.
    `spent_at_snapshot` is what the model had spent, in this process, at the last snapshot; `mark`
    is how far a conversation was then that is so long that what changes is worth a delta.
    """

    tenant_id: str
    conversation_id: str
    state: State
    sequence: int = 0
    turn: int = 0
    digest: str = GENESIS
    is_erased: bool = False
    utterances: dict[str, bytes] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)
    atom_sources: dict[int, AtomSource] = field(default_factory=dict)
    digests: StateDigest = field(default_factory=StateDigest)
    projection: object | None = field(default=None, compare=False, repr=False)
    spent_at_snapshot: int = field(default=0, compare=False)
    mark: Mark | None = field(default=None, compare=False, repr=False)

    @classmethod
    def empty(
        cls, tenant_id: str, conversation_id: str, bounds: Bounds | None = None
    ) -> Conversation:
        """A conversation of which nothing is folded yet."""
        return cls(tenant_id, conversation_id, State(bounds))

    def forget(self) -> None:
        """Nothing of it was ever folded: who could still read it and who could not agree."""
        self.release()
        empty = Conversation.empty(self.tenant_id, self.conversation_id)
        for name in self.__slots__:
            setattr(self, name, getattr(empty, name))

    def state_digest(self) -> str:
        """The digest of the state; costs what changed since it was last asked for."""
        return self.digests.hexdigest(self.state)

    def coverage(self) -> Coverage:
        """Whether every statement so far was interpreted; of those that were not, the newest."""
        if not self.missing:
            return _COMPLETE
        newest = tuple(islice(reversed(self.missing), MISSING_TURNS_MAX))
        return Coverage(complete=False, missing_turns=newest[::-1], missing_count=len(self.missing))

    def release(self) -> None:
        """Free the memory of a conversation that is not used again, without the garbage collector.

        Records and their dependents hold each other, and collecting that costs as much as all the
        conversations that stay.
        """
        self.projection = None
        for record in self.state.records.values():
            record.dependents = NO_RECORDS
            record.corroborated = ()
