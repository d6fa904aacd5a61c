"""What the eight operations do to the plausibility model and to awareness.

Every update is tagged with the records it stands for, so that giving one of them up takes it out of
the model again: observe and hypothesize {record}; support {target, evidence}; undermine {evidence};
the negation of a revise {by}; resolve {target}; the meaning of any record with a formula {record}.
"""

from __future__ import annotations

from typing import assert_never

from processor.engine.messages import named
from processor.engine.model_conditions import Assessment
from processor.engine.plausibility.formula import (
    And,
    Atom,
    Formula,
    Implies,
    Not,
    atoms,
)
from processor.engine.plausibility.update import Update, UpdateKind
from processor.engine.run import Run
from processor.engine.state import Dispute, Problem
from schemas.derived import Note, NoteCode
from schemas.operations import (
    Observe,
    Operation,
    Reference,
    Revise,
)


def apply_to_model(run: Run, operation: Operation, assessment: Assessment) -> None:
    """Append what the operation means for M, and make its hearers aware of what it mentions."""
    for record, formula in assessment.meanings:
        if assessment.unanswered is None:
            _give_meaning(run, record, formula)
        else:
            _make_aware(run, formula)
    match operation.op:
        case "observe":
            _observe(run, operation, assessment)
        case "hypothesize":
            if assessment.formula is not None:
                _give_meaning(run, operation.record, assessment.formula)
            _update(run, UpdateKind.RADICAL, Atom(operation.record), (operation.record,))
        case "support":
            kind = UpdateKind.RADICAL if operation.specific else UpdateKind.CONSERVATIVE
            tags = (operation.target, _id_of(operation.evidence))
            _update(run, kind, Atom(operation.target), tags)
        case "undermine":
            kind = UpdateKind.RADICAL if operation.contrast else UpdateKind.CONSERVATIVE
            _update(run, kind, Not(Atom(operation.target)), (_id_of(operation.evidence),))
        case "revise":
            _revise(run, operation, assessment)
        case "expand_awareness":
            _update(run, UpdateKind.VARIABLE, Atom(operation.proposition), ())
        case "resolve":
            if operation.mode == "consensual":
                _update(run, UpdateKind.ANNOUNCEMENT, Atom(operation.target), (operation.target,))
        case "question":
            pass
        case _:
            assert_never(operation)


def announce_observations(run: Run) -> None:
    """Announce the observations of the turn at once, each evaluated in the model before them."""
    for update in run.announced:
        run.transition.update_model(update)
    run.announced.clear()


def _observe(run: Run, operation: Observe, assessment: Assessment) -> None:
    formula = assessment.formula
    if formula is not None:
        _make_aware(run, formula)
    if assessment.unanswered is not None:
        text = f"the content of {operation.record} is not announced: {assessment.unanswered}"
        _note(run, NoteCode.ANNOUNCEMENT_WITHHELD, text, (operation.record,))
        return
    if assessment.untold is not None:
        text = f"what {operation.record} contradicts or surprises is not known: {assessment.untold}"
        _note(run, NoteCode.BOUND_EXCEEDED, text, (operation.record,))
    if assessment.surprises:
        run.transition.add_problem(
            Problem(
                id=operation.record,
                text=operation.claim,
                about=(),
                speaker=operation.speaker or run.speaker,
                turn=run.turn,
                is_question=False,
            )
        )
    if assessment.contradicted is None:
        atom = Atom(operation.record)
        content = atom if formula is None else And((atom, formula))
        run.announced.append(
            Update(
                run.turn,
                UpdateKind.ANNOUNCEMENT,
                content,
                (operation.record,),
                run.audience,
                True,  # simultaneous; by position, as a name would double what it costs
            )
        )
        return
    contradicted = tuple(sorted(assessment.contradicted))
    run.transition.add_dispute(Dispute(operation.record, contradicted, run.turn))
    rivals = f"it contradicts {named(contradicted)}"
    if not contradicted:
        is_setup = assessment.untold is None
        rivals = "the setup rules it out" if is_setup else "it contradicts what was said before"
    text = f"the content of {operation.record} is not announced: {rivals}"
    _note(run, NoteCode.ANNOUNCEMENT_WITHHELD, text, (operation.record, *contradicted))


def _revise(run: Run, operation: Revise, assessment: Assessment) -> None:
    target, by = run.state.records[operation.target], _id_of(operation.by)
    run.transition.contract_model(target)
    if assessment.unanswered is not None:
        code = NoteCode.NEGATION_SKIPPED if operation.negates else NoteCode.ANNOUNCEMENT_WITHHELD
        text = f"{target.id} is withdrawn, and nothing is concluded: {assessment.unanswered}"
        _note(run, code, text, (target.id, by))
    elif not operation.negates:
        pass
    elif assessment.negation:
        _update(run, UpdateKind.ANNOUNCEMENT, Not(Atom(target.id)), (by,))
    else:
        text = f"{target.id} cannot be false in any world that is left"
        _note(run, NoteCode.NEGATION_SKIPPED, text, (target.id,))


def _give_meaning(run: Run, record: str, formula: Formula) -> None:
    """The meaning law of a record with a formula: whoever holds it holds its content."""
    _make_aware(run, formula)
    _update(run, UpdateKind.LAW, Implies(Atom(record), formula), (record,))


def _make_aware(run: Run, formula: Formula) -> None:
    """Who hears a formula has its variables in mind from then on."""
    for proposition in atoms(formula):
        if not run.state.awareness.is_everyone_aware(proposition):
            run.transition.expand_awareness(proposition, None, run.audience, run.turn)


def _update(run: Run, kind: UpdateKind, formula: Formula, tags: tuple[str, ...]) -> None:
    run.transition.update_model(Update(run.turn, kind, formula, tags, run.audience))


def _note(run: Run, code: NoteCode, text: str, records: tuple[str, ...]) -> None:
    run.notes.append(Note(code=code, text=text, records=tuple(sorted(records))))


def _id_of(reference: Reference) -> str:
    return reference if isinstance(reference, str) else reference.record
