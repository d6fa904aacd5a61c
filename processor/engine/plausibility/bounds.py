"""The bounds of the plausibility model, and the two ways in which a question has no answer.

Every bound is a function of the log and the question alone: a warm cache spends what a cold one
would have spent, so the same log runs into the same bound on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

NODES_PER_STEP = 64
"""A step is one operation on world sets, or one more for each so many nodes of its result."""


@final
@dataclass(frozen=True, slots=True)
class Bounds:
    """Settings of the model.

    `variables` counts those that the log and the question together depend on; `nodes` those of one
    world set; `steps` the operations on world sets that one belief, or one question, takes;
    `perspectives` the different views of the log that nested modalities need; `worlds` how many
    worlds a listing may have.
    """

    variables: int = 4_096
    nodes: int = 200_000
    steps: int = 500_000
    perspectives: int = 128
    worlds: int = 4_096


class BoundExceeded(Exception):  # noqa: N818 - named after the rejection code bound_exceeded
    """A question would take more than a setting allows; `bound` names the setting."""

    def __init__(self, bound: str, limit: int) -> None:
        super().__init__(f"the plausibility model needs more than {limit} {bound}")
        self.bound = bound
        self.limit = limit


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
    """Counts the steps of one computation and stops it at the bound."""

    __slots__ = ("_limit", "spent")

    def __init__(self, limit: int, spent: int = 0) -> None:
        self._limit = limit
        self.spent = spent

    def spend(self, nodes: int = 0) -> None:
        """Account for one operation whose result has `nodes`. Raises BoundExceeded (steps)."""
        self.spent += 1 + nodes // NODES_PER_STEP
        if self.spent > self._limit:
            raise BoundExceeded("steps", self._limit)
