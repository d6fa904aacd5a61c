"""What the eight operations do to AF, Cm and Dep (Algorithm 1, as the specification restores it).

Each function assumes that the preconditions hold. What an operation does to the plausibility model
stands in `model_effects.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from processor.engine.formulas import formula_of
from processor.engine.impact import measure_impact
from processor.engine.record import (
    Happening,
    LinkKind,
    Record,
    RecordKind,
)
from processor.engine.run import Run
from processor.engine.state import Problem
from processor.engine.transition import Cause
from schemas.derived import Standing
from schemas.evidence import Atom
from schemas.formula import FormulaInput
from schemas.operations import (
    ExpandAwareness,
    Hypothesize,
    InlineRecord,
    Observe,
    Operation,
    Question,
    Reference,
    Resolve,
    Revise,
    Support,
    Undermine,
)


def apply_to_map(run: Run, operation: Operation, cause: Cause) -> None:
    """Do what the operation does to records, links, attacks, standings and problems."""
    match operation.op:
        case "observe":
            _observe(run, operation, cause)
        case "hypothesize":
            _hypothesize(run, operation, cause)
        case "support":
            _support(run, operation, cause)
        case "undermine":
            _undermine(run, operation, cause)
        case "revise":
            _revise(run, operation, cause)
        case "expand_awareness":
            _expand_awareness(run, operation, cause)
        case "resolve":
            _resolve(run, operation, cause)
        case "question":
            _question(run, operation, cause)
        case _:
            assert_never(operation)


def _observe(run: Run, operation: Observe, cause: Cause) -> None:
    _introduce(
        run,
        cause,
        operation.record,
        operation.claim,
        RecordKind.OBSERVATION,
        _supports(run, operation.premises, cause),
        formula=operation.formula,
        atoms=operation.atoms,
    )


def _hypothesize(run: Run, operation: Hypothesize, cause: Cause) -> None:
    record = _introduce(
        run,
        cause,
        operation.record,
        operation.claim,
        RecordKind.HYPOTHESIS,
        _supports(run, operation.premises, cause),
        formula=operation.formula,
        answers=operation.explains,
    )
    for problem in operation.explains:
        run.transition.add_answer(problem, record)


def _support(run: Run, operation: Support, cause: Cause) -> None:
    target = run.state.records[operation.target]
    evidence = _cited(run, operation.evidence, RecordKind.EVIDENCE, cause)
    run.transition.add_link(target, evidence, LinkKind.CORROBORATION, cause)


def _undermine(run: Run, operation: Undermine, cause: Cause) -> None:
    born, lost = len(run.transition.born), len(run.transition.lost)
    target = run.state.records[operation.target]
    attacker = _cited(run, operation.evidence, RecordKind.EVIDENCE, cause)
    cause = cause._replace(by=attacker.id)
    run.transition.add_attack(target, attacker, cause)
    if target.standing is Standing.ACTIVE:
        run.transition.set_standing(target, Standing.WEAKENED, cause)
        run.impacts.append(
            measure_impact(run.transition, target, Standing.WEAKENED, cause, born, lost)
        )


def _revise(run: Run, operation: Revise, cause: Cause) -> None:
    born, lost = len(run.transition.born), len(run.transition.lost)
    target = run.state.records[operation.target]
    attacker = _cited(run, operation.by, RecordKind.EVIDENCE, cause)
    cause = cause._replace(by=attacker.id)
    run.transition.add_attack(target, attacker, cause)
    if cause.speaker == target.speaker:
        run.transition.end_commitment(target, cause)
    if target.standing is not Standing.ABANDONED:
        stood = target.stands
        run.transition.set_standing(target, Standing.ABANDONED, cause)
        if stood:
            run.impacts.append(
                measure_impact(run.transition, target, Standing.ABANDONED, cause, born, lost)
            )
    run.transition.clear_disputes(target, run.turn)


def _expand_awareness(run: Run, operation: ExpandAwareness, cause: Cause) -> None:
    run.transition.expand_awareness(operation.proposition, operation.agents, run.audience, run.turn)
    by = None
    if operation.record is not None:
        claim = operation.claim or operation.proposition
        by = _introduce(run, cause, operation.record, claim, RecordKind.PREMISE, ()).id
    if operation.reclassifies is not None:
        reclassified = run.state.records[operation.reclassifies]
        run.transition.note(
            reclassified, Happening.RECLASSIFIED, cause._replace(by=by), operation.proposition
        )


def _resolve(run: Run, operation: Resolve, cause: Cause) -> None:
    target = run.state.records[operation.target]
    if not target.is_decision:
        run.decided.append(target)
    if target.standing is not Standing.RESOLVED:
        run.transition.set_standing(target, Standing.RESOLVED, cause)
    for subsumed in operation.subsumes:
        run.transition.add_link(run.state.records[subsumed], target, LinkKind.SUBSUMPTION, cause)
    decision = operation.decision
    own = () if decision is None else _supports(run, decision.premises, cause)
    premises = _supports(run, operation.premises, cause)
    if decision is None:
        answer = target
        for premise in premises:
            run.transition.add_link(target, premise, LinkKind.PREMISE, cause)
    else:
        supports = tuple(dict.fromkeys([target, *premises, *own]))
        answer = _introduce(
            run,
            cause,
            decision.record,
            decision.claim,
            RecordKind.DECISION,
            supports,
            formula=decision.formula,
            atoms=decision.atoms,
            answers=operation.answers,
        )
    for problem in operation.answers:
        run.transition.add_answer(problem, answer)
    for dissent in operation.dissent:
        run.transition.note(
            answer,
            Happening.DISSENT,
            cause._replace(speaker=dissent.agent, by=target.id),
            dissent.reason,
        )


def _question(run: Run, operation: Question, cause: Cause) -> None:
    run.transition.add_problem(
        Problem(
            id=operation.question,
            text=operation.text,
            about=operation.about,
            speaker=cause.speaker,
            turn=run.turn,
            is_question=True,
        )
    )


def _cited(run: Run, reference: Reference, kind: RecordKind, cause: Cause) -> Record:
    """The record a reference names, introduced now if the reference is an inline object."""
    if isinstance(reference, str):
        return run.state.records[reference]
    return _introduce_inline(run, reference, kind, cause)


def _introduce_inline(run: Run, inline: InlineRecord, kind: RecordKind, cause: Cause) -> Record:
    return _introduce(
        run,
        cause,
        inline.record,
        inline.claim,
        kind,
        _supports(run, inline.premises, cause),
        formula=inline.formula,
        atoms=inline.atoms,
    )


def _supports(run: Run, references: Sequence[Reference], cause: Cause) -> tuple[Record, ...]:
    """The cited records in order, each once; inline ones become premise records."""
    if not references:
        return ()
    cited = [_cited(run, reference, RecordKind.PREMISE, cause) for reference in references]
    return tuple(cited if len(cited) == 1 else dict.fromkeys(cited))


def _introduce(
    run: Run,
    cause: Cause,
    id_: str,
    claim: str,
    kind: RecordKind,
    supports: tuple[Record, ...],
    formula: FormulaInput | None = None,
    atoms: tuple[Atom, ...] = (),
    answers: tuple[str, ...] = (),
) -> Record:
    record = Record(  # by position: names would double what it costs
        id_,
        claim,
        kind,
        cause.op,
        cause.speaker,
        run.turn,
        run.audience,
        None if formula is None else formula_of(formula),
        atoms,
        answers,
        supports,
        len(run.state.records),
        run.authority.role,
    )
    run.transition.add_record(record)
    return record
