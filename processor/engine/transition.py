"""Everything that changes a state lives here.

One utterance is one transition: its changes are made one by one, each leaving a note of how to take
it back, and are then kept (`commit`) or thrown away (`rollback`). A dry run is a transition that is
thrown away. `change` says in canonical values what the transition did to the map.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple, TypeAlias, final

from processor.engine.grounding import push_core, push_strict
from processor.engine.plausibility.update import Update
from processor.engine.record import Audience, Happening, LinkKind, Record, TrailEntry
from processor.engine.state import Dispute, Problem, State
from schemas.derived import Standing
from schemas.policy import Policy

Change: TypeAlias = "tuple[str | int | tuple[str, ...] | None, ...]"
"""One thing that a transition did to the map."""


@final
class Cause(NamedTuple):
    """What a change comes from: turn, operation, the record it acts through, who said it."""

    turn: int
    op: str
    by: str | None
    speaker: str


@final
class StandingChange(NamedTuple):
    """A record got another standing, through this operation and record."""

    record: str
    standing: Standing
    op: str
    by: str | None


@final
class Part(IntEnum):
    """The sections of the state that the digest keeps apart, beside the records."""

    PROBLEM = 0
    DISPUTE = 1
    UPDATES = 2
    AWARENESS = 3


@final
class Transition:
    """An open change of one state.

    `lost` and `core_lost` are the records whose strict answer, or whose answer without
    corroboration, turned to no, in the order they turned; `born` are the new ones.
    `touched_records` got an entry into their trail; `touched` are the other parts of the state that
    changed: the id of a problem, the place of a dispute, the turn of updates, a proposition.
    `brings_atoms` says that a new record carries some.
    """

    __slots__ = (
        "_awareness_mark",
        "_model_mark",
        "_undo",
        "born",
        "brings_atoms",
        "change",
        "core_lost",
        "lost",
        "standings",
        "state",
        "touched",
        "touched_records",
        "updated_model",
    )

    def __init__(self, state: State) -> None:
        self.state = state
        self.change: list[Change] = []
        self.born: list[Record] = []
        self.brings_atoms = False
        self.lost: list[Record] = []
        self.core_lost: list[Record] = []
        self.standings: list[StandingChange] = []
        self.touched_records: list[Record] = []
        self.touched: list[tuple[Part, str | int]] = []
        self.updated_model = False
        self._undo: list[tuple[Callable[..., object], object]] = []
        self._model_mark = state.model.mark()
        self._awareness_mark = state.awareness.mark()

    # -- records, links, attacks, standing ------------------------------------------------------

    def add_record(self, record: Record) -> None:
        """Introduce a record; its speaker is committed to it from now on."""
        state = self.state
        state.records[record.id] = record
        introduced = state.introduced.get(record.speaker)
        if introduced is None:
            introduced = state.introduced[record.speaker] = []
        introduced.append(record)
        for support in record.supports:
            support.add_dependent(record)
        state.link_count += len(record.supports)
        self.born.append(record)
        if record.atoms:
            self.brings_atoms = True
        self.change.append(("record", record.id, record.kind))
        self._undo.append((self._remove_record, record))

    def add_link(self, record: Record, support: Record, kind: LinkKind, cause: Cause) -> None:
        """Let a record rest on another one too; a link that is there already stays as it is."""
        if _is_linked(record, support):
            return
        corroborates = kind is LinkKind.CORROBORATION
        record.add_support(support, corroborates=corroborates)
        self.state.link_count += 1
        self._undo.append((self._remove_link, (record, corroborates)))
        self._append(record, Happening.LINKED, cause._replace(by=support.id), kind)
        if not support.grounded:
            push_strict(record, self.lost)
        if not corroborates and not support.core_grounded:
            push_core(record, self.core_lost)

    def add_attack(self, target: Record, attacker: Record, cause: Cause) -> None:
        """Record (attacker, target) in Att; once, however often it is made."""
        attack = (attacker.id, target.id)
        if attack in self.state.attacks:
            return
        self.state.attacks[attack] = None
        self._undo.append((self.state.attacks.pop, attack))
        self._append(target, Happening.ATTACKED, cause, None)

    def set_standing(self, record: Record, standing: Standing, cause: Cause) -> None:
        """Give a record another standing; leaving good standing ungrounds what rests on it."""
        assert standing is not Standing.ACTIVE, "no operation moves a record back into S_t"
        self._undo.append((self._restore_standing, (record, record.standing)))
        record.standing = standing
        self.standings.append(StandingChange(record.id, standing, cause.op, cause.by))
        self._append(record, Happening.STANDING, cause, standing)
        if not record.stands:
            push_strict(record, self.lost)
            push_core(record, self.core_lost)

    def end_commitment(self, record: Record, cause: Cause) -> None:
        """The speaker of a record revised it itself."""
        if not record.committed:
            return
        record.committed = False
        self._undo.append((self._restore_commitment, record))
        self._append(record, Happening.COMMITMENT_ENDED, cause, None)

    def note(
        self, record: Record, happening: Happening, cause: Cause, value: str | None = None
    ) -> None:
        """Write into a record's trail without changing anything else."""
        self._append(record, happening, cause, value)

    def _append(
        self, record: Record, happening: Happening, cause: Cause, value: str | None
    ) -> None:
        record.add_to_trail(
            TrailEntry(happening, cause.turn, cause.op, cause.by, cause.speaker, value)
        )
        self.touched_records.append(record)
        self.change.append((happening, record.id, cause.op, cause.by, cause.speaker, value))
        self._undo.append((list.pop, record.trail))

    # -- problems and disputes ------------------------------------------------------------------

    def add_problem(self, problem: Problem) -> None:
        """Pose a question, or note that an observation surprised its hearers."""
        self.state.problems[problem.id] = problem
        self.touched.append((Part.PROBLEM, problem.id))
        self.change.append(("problem", problem.id))
        self._undo.append((self.state.problems.pop, problem.id))

    def add_answer(self, id_: str, answer: Record) -> None:
        """Note that a record answers a problem; ids that pose no problem are passed over."""
        problem = self.state.problems.get(id_)
        if problem is None or answer.id in problem.answers:
            return
        problem.answers.append(answer.id)
        self.touched.append((Part.PROBLEM, id_))
        self.change.append(("answer", id_, answer.id))
        self._undo.append((list.pop, problem.answers))

    def add_dispute(self, dispute: Dispute) -> None:
        """Mark an observation and what it contradicts as disputed."""
        self.state.disputes.append(dispute)
        self._mark_disputed(len(self.state.disputes) - 1)
        self.touched.append((Part.DISPUTE, len(self.state.disputes) - 1))
        self.change.append(("dispute", dispute.observation, dispute.contradicts))
        self._undo.append((self._remove_dispute, dispute))

    def clear_disputes(self, record: Record, turn: int) -> None:
        """A side was revised: every dispute it takes part in is over."""
        for place in tuple(self.state.disputed.get(record.id, ())):
            dispute = self.state.disputes[place]
            dispute.cleared_turn = turn
            self._unmark_disputed(place)
            self.touched.append((Part.DISPUTE, place))
            self.change.append(("dispute_cleared", dispute.observation))
            self._undo.append((self._restore_dispute, place))

    # -- the plausibility model and awareness ----------------------------------------------------

    def update_model(self, update: Update) -> None:
        """Append to the log of the plausibility model."""
        self.state.model.append(update)
        self.updated_model = True
        self.change.append(("update", update.kind, *update.tags))

    def contract_model(self, record: Record) -> None:
        """Drop from the model's log what stands for this record."""
        for update in self.state.model.contract(record.id):
            self.touched.append((Part.UPDATES, update.turn))
            self.change.append(("contracted", update.kind, update.turn, *update.tags))

    def expand_awareness(
        self, proposition: str, agents: tuple[str, ...] | None, audience: Audience, turn: int
    ) -> None:
        """Bring a proposition to the mind of these agents, as far as they hear the turn."""
        self.state.awareness.expand(proposition, agents, audience, turn)
        self.touched.append((Part.AWARENESS, proposition))
        self.change.append(("aware", proposition, agents))

    def declare_role(self, agent: str, role: str) -> None:
        """An agent that a setup names."""
        assert agent not in self.state.roles
        self.state.roles[agent] = role
        self.change.append(("agent", agent, role))
        self._undo.append((self.state.roles.pop, agent))

    def set_own_policy(self, policy: Policy) -> None:
        """The policy that a setup gives its conversation."""
        assert self.state.own_policy is None
        self.state.own_policy = policy
        self.change.append(("own_policy", policy.version))
        self._undo.append((self._restore_own_policy, None))

    # -- the end of it --------------------------------------------------------------------------

    def commit(self) -> None:
        """Keep everything; what could take it back refers to this and would hold the state."""
        self._undo.clear()

    def rollback(self) -> None:
        """Take everything back, last change first."""
        while self._undo:
            undo, argument = self._undo.pop()
            undo(argument)
        for record in self.lost:
            record.grounded = True
        for record in self.core_lost:
            record.core_grounded = True
        self.state.model.rollback(self._model_mark)
        self.state.awareness.rollback(self._awareness_mark)

    # -- how each change is taken back ----------------------------------------------------------

    def _remove_record(self, record: Record) -> None:
        state = self.state
        del state.records[record.id]
        introduced = state.introduced[record.speaker]
        introduced.pop()
        if not introduced:
            del state.introduced[record.speaker]
        for support in reversed(record.supports):
            support.dependents.pop()
        state.link_count -= len(record.supports)

    def _remove_link(self, link: tuple[Record, bool]) -> None:
        record, corroborates = link
        record.drop_support(corroborates=corroborates)
        self.state.link_count -= 1

    def _restore_standing(self, before: tuple[Record, Standing]) -> None:
        record, standing = before
        record.standing = standing

    def _restore_commitment(self, record: Record) -> None:
        record.committed = True

    def _restore_own_policy(self, before: Policy | None) -> None:
        self.state.own_policy = before

    def _remove_dispute(self, _: Dispute) -> None:
        self._unmark_disputed(len(self.state.disputes) - 1)
        self.state.disputes.pop()

    def _restore_dispute(self, place: int) -> None:
        self.state.disputes[place].cleared_turn = None
        self._mark_disputed(place)

    def _mark_disputed(self, place: int) -> None:
        for id_ in self.state.disputes[place].sides():
            insort(self.state.disputed.setdefault(id_, []), place)

    def _unmark_disputed(self, place: int) -> None:
        disputed = self.state.disputed
        for id_ in self.state.disputes[place].sides():
            places = disputed[id_]
            del places[bisect_left(places, place)]
            if not places:
                del disputed[id_]


def _is_linked(record: Record, support: Record) -> bool:
    """Whether the record rests on this support directly; asks the side with fewer links."""
    if len(support.dependents) < len(record.supports):
        return record in support.dependents
    return support in record.supports
