"""Turn composition: the operations of one utterance are one transition.

They are applied in the fixed order of kinds, keeping the given order inside a kind. A refused
operation changes nothing; the others still apply, unless they cite what it would have introduced.

The contractions of a turn's accepted revisions come first in the plausibility model, yet whether a
revision is accepted is known only at its own place in the order, and may depend on a hypothesis
that is tested in the contracted model. So a turn that evaluates formulas is run under an
assumption, which revisions will be accepted, and run again with the refused ones struck out until
no assumed revision is refused. The assumption only shrinks, so this ends. What a projection says
follows from the turn is applied last, but the contractions of its revisions come first as well: the
turn is run once without them, and again under the assumption that they follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

from processor.engine.apply import apply_to_map
from processor.engine.authority import Authority
from processor.engine.errors import Refusal
from processor.engine.impact import Impact
from processor.engine.implied import SUPERSEDES, Implied, Implies
from processor.engine.model_conditions import NOTHING_TO_ASSESS, assess, brings_formula
from processor.engine.model_effects import announce_observations, apply_to_model
from processor.engine.preconditions import awareness_refusal, structural_refusal
from processor.engine.record import Audience, Happening, Record
from processor.engine.retraction import sorted_ids
from processor.engine.run import Run
from processor.engine.state import Dispute, State
from processor.engine.transition import Cause, Change, StandingChange, Transition
from schemas.contract import REASON_CHARS_MAX, REFERENCES_MAX
from schemas.derived import Note
from schemas.log import Rejection
from schemas.operations import OPERATION_ORDER, Operation, Revise

_RANK = {op: rank for rank, op in enumerate(OPERATION_ORDER)}


@final
class TurnOutcome(NamedTuple):
    """What a statement did; ids ascending unless said otherwise, indexes as given and ascending.

    `decisions` are the records somebody may act on whose grounding became worse in this turn, or
    that were decided on failing ground, by id; `alerts` is the part of them that is ungrounded and
    was never alerted before. `introduced` are the new records, `standings` the changes of
    standing, both in the order they came.
    """

    applied: tuple[int, ...]
    rejections: tuple[Rejection, ...]
    impacts: tuple[Impact, ...]
    notes: tuple[Note, ...]
    ungrounded: tuple[str, ...]
    decisions: tuple[str, ...]
    alerts: tuple[str, ...]
    introduced: tuple[str, ...]
    standings: tuple[StandingChange, ...]
    change: list[Change]


def run_turn(
    state: State,
    turn: int,
    speaker: str,
    audience: Audience,
    operations: Sequence[Operation],
    authority: Authority,
    implies: Implies | None = None,
) -> tuple[Transition, TurnOutcome]:
    """Apply the operations of one statement; the caller commits or rolls back the transition."""
    order = sorted(range(len(operations)), key=[_RANK[each.op] for each in operations].__getitem__)
    evaluated = [operation for operation in operations if brings_formula(state, operation)]
    if not evaluated:
        run = Run(Transition(state), turn, speaker, audience, authority)
        outcome = _attempt(run, operations, order, None, implies)
        assert outcome is not None, "nothing was assumed"
        return run.transition, outcome
    assumed = Assumed(tuple(i for i in order if operations[i].op == "revise"), None)
    with state.model.turn():
        while True:
            run = Run(Transition(state), turn, speaker, audience, authority)
            outcome = _attempt(run, operations, order, assumed, implies)
            if outcome is not None:
                return run.transition, outcome
            assumed = _less(assumed, run)


def dry_run(
    state: State,
    turn: int,
    speaker: str,
    audience: Audience,
    operations: Sequence[Operation],
    authority: Authority,
    implies: Implies | None = None,
) -> TurnOutcome:
    """What the operations would do; the state is left as it was."""
    transition, outcome = run_turn(state, turn, speaker, audience, operations, authority, implies)
    transition.rollback()
    return outcome


@final
class Assumed(NamedTuple):
    """What a turn that evaluates formulas assumes of itself.

    The revisions that will be accepted, by index, and the records that will be superseded; None
    until the turn has been run once.
    """

    accepted: tuple[int, ...]
    superseded: tuple[str, ...] | None

    def holds(self, run: Run) -> bool:
        """Whether the turn came out as was assumed."""
        if not all(index in run.applied for index in self.accepted):
            return False
        if self.superseded is None:
            return not run.superseded
        return all(id_ in run.superseded for id_ in self.superseded)


def _less(assumed: Assumed, run: Run) -> Assumed:
    """What is left of the assumption; it is first made for what is superseded."""
    accepted = tuple(index for index in assumed.accepted if index in run.applied)
    if len(accepted) < len(assumed.accepted):
        return assumed._replace(accepted=accepted)
    before = run.superseded if assumed.superseded is None else assumed.superseded
    return Assumed(accepted, tuple(id_ for id_ in before if id_ in run.superseded))


def _attempt(
    run: Run,
    operations: Sequence[Operation],
    order: Sequence[int],
    assumed: Assumed | None,
    implies: Implies | None,
) -> TurnOutcome | None:
    """Run the turn under an assumption.

    `assumed` is None where no formula has to be evaluated. If the assumption is wrong, nothing has
    changed and there is no outcome.
    """
    outcome = None
    try:
        if assumed is not None:
            _contract(run, [operations[index] for index in assumed.accepted])
            for id_ in assumed.superseded or ():
                run.contract(id_)
        _apply_in_order(run, operations, order, evaluates=assumed is not None)
        if implies is not None:
            _apply_implied(run, implies(run.state, run.transition.born))
        if assumed is None or assumed.holds(run):
            outcome = _conclude(run)
    finally:
        if outcome is None:
            run.transition.rollback()
    return outcome


def _apply_implied(run: Run, implied: Implied) -> None:
    """Revise what is superseded, then dispute what is contradicted, as operations would."""
    for target, by in implied.revisions:
        speaker = run.state.records[by].speaker
        revision = Revise(op="revise", target=target, by=by)
        apply_to_map(run, revision, Cause(run.turn, SUPERSEDES, None, speaker))
        apply_to_model(run, revision, NOTHING_TO_ASSESS)
        run.superseded.append(target)
    for record, contradicts in implied.disputes:
        run.transition.add_dispute(Dispute(record, contradicts, run.turn))
    run.notes.extend(implied.notes)


def _contract(run: Run, revisions: Sequence[Operation]) -> None:
    for revision in revisions:
        assert isinstance(revision, Revise)
        run.contract(revision.target)


def _apply_in_order(
    run: Run, operations: Sequence[Operation], order: Sequence[int], evaluates: bool
) -> None:
    announced = False
    for index in order:
        operation = operations[index]
        if not announced and _RANK[operation.op] > _RANK["observe"]:
            announce_observations(run)
            announced = True
        refusal = _apply_one(run, operation, evaluates)
        if refusal is None:
            run.applied.append(index)
        else:
            run.rejections.append(_rejection(index, refusal))
    if not announced:
        announce_observations(run)


def _rejection(index: int, refusal: Refusal) -> Rejection:
    """The refusal as it goes on the wire, within the bounds of the contract."""
    return Rejection(
        index=index,
        code=refusal.code,
        reason=refusal.reason[:REASON_CHARS_MAX],
        records=refusal.records[:REFERENCES_MAX],
    )


def _apply_one(run: Run, operation: Operation, evaluates: bool) -> Refusal | None:
    """Check, then apply: a refused operation has changed nothing."""
    refusal = structural_refusal(run.state, operation)
    if refusal is None:
        refusal = run.authority.refusal(run.state, operation)
    if refusal is None and operation.op == "expand_awareness":
        refusal = awareness_refusal(run.state, operation, run.audience)
    if refusal is not None:
        return refusal
    assessment = NOTHING_TO_ASSESS
    if evaluates and brings_formula(run.state, operation):
        assessed = assess(run, operation)
        if isinstance(assessed, Refusal):
            return assessed
        assessment = assessed
    cause = Cause(run.turn, operation.op, None, operation.speaker or run.speaker)
    apply_to_map(run, operation, cause)
    apply_to_model(run, operation, assessment)
    return None


def _conclude(run: Run) -> TurnOutcome:
    transition = run.transition
    fallen = transition.lost + [record for record in transition.born if not record.grounded]
    decisions: tuple[str, ...] = ()
    alerts: tuple[str, ...] = ()
    if fallen or transition.core_lost or run.decided:
        worse_off = _decisions_worse_off(run, fallen)
        decisions = sorted_ids(worse_off)
        alerts = sorted_ids(_alert(run, worse_off))
    return TurnOutcome(
        applied=tuple(sorted(run.applied)),
        rejections=tuple(sorted(run.rejections, key=lambda rejection: rejection.index)),
        impacts=tuple(run.impacts),
        notes=tuple(run.notes),
        ungrounded=sorted_ids(dict.fromkeys(fallen)) if fallen else (),
        decisions=decisions,
        alerts=alerts,
        introduced=tuple([record.id for record in transition.born]),
        standings=tuple(transition.standings),
        change=transition.change,
    )


def _decisions_worse_off(run: Run, fallen: Sequence[Record]) -> list[Record]:
    """The decisions whose grounding became worse, or that were taken on failing ground, by id."""
    ungrounded_when_decided = [record for record in run.decided if not record.grounded]
    worse = dict.fromkeys([*fallen, *run.transition.core_lost, *ungrounded_when_decided])
    return sorted((record for record in worse if record.is_decision), key=lambda each: each.id)


def _alert(run: Run, decisions: Sequence[Record]) -> list[Record]:
    """Alert about the ungrounded ones among the decisions, each once; return those."""
    alerted = [r for r in decisions if not r.grounded and not r.happened(Happening.ALERTED)]
    for record in alerted:
        cause = Cause(run.turn, "", None, record.speaker)
        run.transition.note(record, Happening.ALERTED, cause)
    return alerted
