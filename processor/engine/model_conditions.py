"""What the plausibility model says of an operation before it is applied.

Only formulas that were brought are checked. An operation without one still appends its update, but
nothing is evaluated until somebody asks, so a long conversation without formulas costs nothing
here. Whatever has to be evaluated is evaluated now, so that a bound that is reached refuses the
operation before it has changed anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, assert_never, final

from processor.engine.errors import Refusal
from processor.engine.formulas import formula_of
from processor.engine.plausibility.abduction import (
    contradicted_records,
    hypothesis_rejection,
    is_surprise,
)
from processor.engine.plausibility.bounds import BoundExceeded, CommonKnowledgeUndefined
from processor.engine.plausibility.formula import (
    And,
    Atom,
    Formula,
    FormulaError,
    Implies,
    Not,
)
from processor.engine.run import Run
from processor.engine.state import State
from schemas.log import RejectionCode
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


@final
class Assessment(NamedTuple):
    """What applying the operation to the model will need to know.

    `formula` is the operation's own; `contradicted` are the records an observation is impossible
    with, or None if it is possible; `surprises` says that no hearer believed it; `negation` is
    False if the target's negation would leave no world. `meanings` are the inline records with a
    formula.
    """

    formula: Formula | None = None
    meanings: tuple[tuple[str, Formula], ...] = ()
    contradicted: tuple[str, ...] | None = None
    surprises: bool = False
    negation: bool = True


NOTHING_TO_ASSESS = Assessment()


def assess(run: Run, operation: Operation) -> Assessment | Refusal:
    """Why the model refuses an operation that brings a formula, or what it says of it."""
    try:
        meanings = _inline_meanings(run, operation)
        assessment = _assess(run, operation)
        if isinstance(assessment, Refusal):
            return assessment
        return assessment._replace(meanings=meanings)
    except FormulaError as unreadable:
        return Refusal(RejectionCode.BOUND_EXCEEDED, str(unreadable), ())
    except BoundExceeded as bound:
        return Refusal(RejectionCode.BOUND_EXCEEDED, str(bound), ())
    except CommonKnowledgeUndefined as undefined:
        return Refusal(RejectionCode.INCONSISTENT_WITH_MODEL, str(undefined), ())


def brings_formula(state: State, operation: Operation) -> bool:
    """Whether the operation gives the model something to check."""
    match operation:
        case Observe() | Hypothesize():
            return operation.formula is not None or _any_inline(operation.premises)
        case Support() | Undermine():
            return _any_inline((operation.evidence,))
        case Revise():
            return _any_inline((operation.by,)) or (
                operation.negates and _has_formula(state, operation.target)
            )
        case Resolve():
            decision = () if operation.decision is None else (operation.decision,)
            return _any_inline((*operation.premises, *decision)) or (
                operation.mode == "consensual" and _has_formula(state, operation.target)
            )
        case ExpandAwareness() | Question():
            return False
        case _:
            assert_never(operation)


def _assess(run: Run, operation: Operation) -> Assessment | Refusal:
    match operation:
        case Observe():
            return _assess_observe(run, operation)
        case Hypothesize():
            return _assess_hypothesize(run, operation)
        case Revise():
            return _assess_revise(run, operation)
        case Resolve():
            return _assess_resolve(run, operation)
        case Support() | Undermine() | ExpandAwareness() | Question():
            return NOTHING_TO_ASSESS
        case _:
            assert_never(operation)


def _assess_observe(run: Run, operation: Observe) -> Assessment:
    """Possible together with what the turn announces already, in the model before the turn."""
    if operation.formula is None:
        return NOTHING_TO_ASSESS
    formula = formula_of(operation.formula)
    model = run.state.model
    speaker = operation.speaker or run.speaker
    hearers = tuple(sorted({*run.state.hearers(run.audience), speaker}))
    surprises = is_surprise(model, hearers, formula)
    announcement = And((Atom(operation.record), formula))
    together = tuple(update.formula for update in run.announced if update.formula is not None)
    if model.possible(And((*together, announcement)) if together else announcement):
        return Assessment(formula, surprises=surprises)
    with model.supposing():
        for update in run.announced:
            model.append(update)
        contradicted = contradicted_records(model, operation.record, formula)
    return Assessment(formula, contradicted=contradicted, surprises=surprises)


def _assess_hypothesize(run: Run, operation: Hypothesize) -> Assessment | Refusal:
    if operation.formula is None:
        return NOTHING_TO_ASSESS
    formula = formula_of(operation.formula)
    records = run.state.records
    explained = [(id_, records[id_].formula) for id_ in operation.explains if id_ in records]
    speaker = operation.speaker or run.speaker
    code = hypothesis_rejection(
        run.state.model, speaker, operation.record, formula, explained, run.audience
    )
    if code is None:
        return Assessment(formula)
    return Refusal(code, _HYPOTHESIS_REASONS[code], (operation.record, *operation.explains))


_HYPOTHESIS_REASONS = {
    RejectionCode.INCONSISTENT_WITH_MODEL: "the speaker believes that it is false",
    RejectionCode.ALREADY_BELIEVED: "the speaker believes it already",
    RejectionCode.NOT_EXPLANATORY: "what it explains would still not be believed",
}


def _assess_revise(run: Run, operation: Revise) -> Assessment:
    """Whether the target can be false once nothing stands for it any more."""
    if not operation.negates or not _has_formula(run.state, operation.target):
        return NOTHING_TO_ASSESS
    model = run.state.model
    with model.supposing():
        model.contract(operation.target)
        return Assessment(negation=model.possible(Not(Atom(operation.target))))


def _assess_resolve(run: Run, operation: Resolve) -> Assessment | Refusal:
    if operation.mode == "authoritative" or not _has_formula(run.state, operation.target):
        return NOTHING_TO_ASSESS
    if run.state.model.possible(Atom(operation.target)):
        return NOTHING_TO_ASSESS
    return Refusal(
        RejectionCode.INCONSISTENT_WITH_MODEL,
        f"{operation.target!r} is false in every world that is left",
        (operation.target,),
    )


def _inline_meanings(run: Run, operation: Operation) -> tuple[tuple[str, Formula], ...]:
    """The formulas of inline records, each evaluated once so that a bound shows now."""
    meanings = tuple(
        (inline.record, formula_of(inline.formula))
        for inline in _inline_records(operation)
        if inline.formula is not None
    )
    for record, formula in meanings:
        run.state.model.possible(Implies(Atom(record), formula))
    return meanings


def _inline_records(operation: Operation) -> Iterator[InlineRecord]:
    """Every record the operation introduces inline, nested ones before the one that cites them."""
    match operation:
        case Observe() | Hypothesize():
            references: tuple[Reference, ...] = operation.premises
        case Support() | Undermine():
            references = (operation.evidence,)
        case Revise():
            references = (operation.by,)
        case Resolve():
            decision = () if operation.decision is None else (operation.decision,)
            references = (*operation.premises, *decision)
        case ExpandAwareness() | Question():
            references = ()
        case _:
            assert_never(operation)
    return _nested(references)


def _nested(references: Sequence[Reference]) -> Iterator[InlineRecord]:
    for reference in references:
        if not isinstance(reference, str):
            yield from _nested(reference.premises)
            yield reference


def _any_inline(references: Sequence[Reference]) -> bool:
    for reference in references:
        if not isinstance(reference, str) and (
            reference.formula is not None or _any_inline(reference.premises)
        ):
            return True
    return False


def _has_formula(state: State, id_: str) -> bool:
    record = state.records.get(id_)
    return record is not None and record.formula is not None
