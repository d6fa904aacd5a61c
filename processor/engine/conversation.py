"""One conversation as far as its log is folded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from processor.engine.digest import GENESIS, StateDigest
from processor.engine.plausibility.bounds import Bounds
from processor.engine.record import NO_RECORDS
from processor.engine.state import State
from schemas.derived import Coverage

_COMPLETE = Coverage(complete=True)


@final
@dataclass(slots=True)
class Conversation:
    """The state and the place in the log.

    `utterances` maps every utterance id in the log to its digest. `missing` maps each
    turn that could not be interpreted, and was not filled since, to its utterance id.
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
    digests: StateDigest = field(default_factory=StateDigest)

    @classmethod
    def empty(
        cls, tenant_id: str, conversation_id: str, bounds: Bounds | None = None
    ) -> Conversation:
        """A conversation of which nothing is folded yet."""
        return cls(tenant_id, conversation_id, State(bounds))

    def state_digest(self) -> str:
        """The digest of the state; costs what changed since it was last asked for."""
        return self.digests.hexdigest(self.state)

    def coverage(self) -> Coverage:
        """Whether every statement so far was interpreted."""
        if not self.missing:
            return _COMPLETE
        return Coverage(complete=False, missing_turns=tuple(sorted(self.missing)))

    def release(self) -> None:
        """Free the memory of a conversation that is not used again, without the garbage collector.

        Records and their dependents hold each other, and collecting that costs as much as all the
        conversations that stay.
        """
        for record in self.state.records.values():
            record.dependents = NO_RECORDS
            record.corroborated = ()
