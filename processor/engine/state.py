"""The state D_t = (M, AF, Cm, Dep), with awareness and open problems.

Read it freely; everything that changes it lives in `transition.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import final

from processor.engine.plausibility.awareness import Awareness
from processor.engine.plausibility.bounds import Bounds
from processor.engine.plausibility.model import Model
from processor.engine.record import Audience, Record
from schemas.policy import Policy


@final
@dataclass(slots=True)
class Problem:
    """A question, or an observation that surprised its hearers (then `id` is the record's).

    `answers` are the records that were put forward for it, in order, each once.
    """

    id: str
    text: str
    about: tuple[str, ...]
    speaker: str
    turn: int
    is_question: bool
    answers: list[str] = field(default_factory=list)


@final
@dataclass(slots=True)
class Dispute:
    """An observation and the records it contradicts; over once any of them is revised."""

    observation: str
    contradicts: tuple[str, ...]
    opened_turn: int
    cleared_turn: int | None = None

    def sides(self) -> tuple[str, ...]:
        """Every record that is in dispute."""
        return (self.observation, *self.contradicts)


@final
class State:
    """The dependency map of one conversation.

    `records` are in the order they were introduced; `attacks` is Att as (attacker, target), in the
    order they were made. `introduced` holds each speaker's records. `disputed` has the places
    in `disputes` of each record's open ones, ascending, and holds no record without one. `roles`
    are the agents a setup declared. `own_policy` is the setup's; `tenant_policy`, the newest that
    the log brought, holds where there is none.
    """

    __slots__ = (
        "attacks",
        "awareness",
        "disputed",
        "disputes",
        "introduced",
        "link_count",
        "model",
        "own_policy",
        "problems",
        "records",
        "roles",
        "tenant_policy",
    )

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.records: dict[str, Record] = {}
        self.problems: dict[str, Problem] = {}
        self.disputes: list[Dispute] = []
        self.disputed: dict[str, list[int]] = {}
        self.introduced: dict[str, list[Record]] = {}
        self.roles: dict[str, str] = {}
        self.own_policy: Policy | None = None
        self.tenant_policy: Policy | None = None
        self.link_count = 0
        self.attacks: dict[tuple[str, str], None] = {}
        self.awareness = Awareness(self.records)
        self.model = Model(bounds, awareness=self.awareness)

    def is_taken(self, id_: str) -> bool:
        """Whether a record or a question has this id: they share one space."""
        return id_ in self.records or id_ in self.problems

    def standing_records(self) -> Iterator[Record]:
        """S_t, in the order the records were introduced."""
        return (record for record in self.records.values() if record.stands)

    def commitments(self, agent: str) -> tuple[str, ...]:
        """Cm_t(agent): what the agent introduced and has not itself revised."""
        return tuple(r.id for r in self.introduced.get(agent, ()) if r.committed)

    def open_problems(self) -> tuple[Problem, ...]:
        """The problems that no answer in good standing settles, in the order they were posed."""
        return tuple(problem for problem in self.problems.values() if self.is_open(problem))

    def is_open(self, problem: Problem) -> bool:
        """Whether no record that answers the problem is in good standing."""
        return not any(self.records[answer].stands for answer in problem.answers)

    def hearers(self, audience: Audience) -> tuple[str, ...]:
        """The known agents who hear an utterance: those declared and those who committed."""
        if audience is not None:
            return audience
        return tuple(sorted({*self.roles, *self.introduced}))
