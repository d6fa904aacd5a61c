"""The bounds of the plausibility model, and the two ways in which a question has no answer.

Every bound is a function of the log and the question alone: a warm cache spends what a cold one
would have spent, so the same log runs into the same bound on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

FAILURES_MAX = 8
"""How many operations of a turn may be given up before it has taken all that it may."""
NODES_PER_STEP = 512
PAIRS_PER_STEP = 4_096
"""A step is one operation on world sets, one more for each so many nodes of its result, and one
more for each so many pairs of nodes of its operands."""


@final
@dataclass(frozen=True, slots=True)
class Bounds:
    """Settings of the model.

    `variables` counts those that the log and the question together depend on; `nodes` those of one
    world set; `perspectives` those that the nested modalities of one question need; `worlds` how
    many worlds a listing may have. `steps` counts the operations on world sets for the views of the
    log that the questions of one turn look at, from its first entry on; `turn_steps` those that the
    turn adds with what it says, asks and supposes.
    """

    variables: int = 4_096
    nodes: int = 50_000
    steps: int = 100_000
    turn_steps: int = 30_000
    perspectives: int = 128
    worlds: int = 4_096


class BoundExceeded(Exception):  # noqa: N818 - named after the rejection code bound_exceeded
    """A question would take more than a setting allows; `bound` names the setting."""

    def __init__(self, bound: str, limit: int) -> None:
        super().__init__(f"the plausibility model needs more than {limit} {bound}")
        self.bound = bound
        self.limit = limit


class OutOfMemory(BoundExceeded):
    """The diagrams of a log together have too many nodes for the memory of their manager."""


class CommonKnowledgeUndefined(Exception):  # noqa: N818 - it says what is wrong, as above
    """C_G was asked where somebody of the group missed an utterance; `agents` is the group."""

    def __init__(self, agents: tuple[str, ...]) -> None:
        super().__init__(
            f"common knowledge of {', '.join(agents)} is only defined where each of them "
            "has heard everything"
        )
        self.agents = agents


@final
class Meter:
    """Counts the steps of a computation and stops it at the bound, then and ever after."""

    __slots__ = ("_limit", "spent")

    def __init__(self, limit: int, spent: int = 0) -> None:
        self._limit = limit
        self.spent = spent

    def spend(self, nodes: int = 0, pairs: int = 0) -> None:
        """Account for one operation whose result has `nodes`. Raises BoundExceeded (steps).

        `pairs` are those of a node of one operand with one of the other that it may have to visit.
        """
        self.charge(1 + nodes // NODES_PER_STEP + pairs // PAIRS_PER_STEP)

    def fail(self) -> None:
        """Account for an operation that was given up because its result has too many nodes.

        It took about as long as an operation may; a few of them are as much as a turn may take.
        """
        self.spent += 1 + self._limit // FAILURES_MAX

    def charge(self, steps: int) -> None:
        """Account for so many steps. Raises BoundExceeded (steps)."""
        self.spent += steps
        if self.spent > self._limit:
            raise BoundExceeded("steps", self._limit)
