"""What the plausibility model says of an operation before it is applied.

Only formulas that were brought are checked. An operation without one still appends its update, but
nothing is evaluated until somebody asks, so a long conversation without formulas costs nothing
here. Whatever has to be evaluated is evaluated now, so that a bound that is reached refuses the
operation before it has changed anything. What was observed or withdrawn is never refused by the
model: there a bound keeps the content out of it, and a note says so.
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
    Hypothesize,
    InlineRecord,
    Observe,
    Operation,
    Reference,
    Resolve,
    Revise,
)


@final
class Assessment(NamedTuple):
    """What applying the operation to the model will need to know.

    `formula` is the operation's own; `contradicted` are the records an observation is impossible
    with, or None if it is possible; `surprises` says that no hearer believed it; `negation` is
    False if the target's negation would leave no world. `meanings` are the inline records with a
    formula. `unanswered` says why the model has no answer, so that it must not take anything in;
    `untold` why it cannot say what is contradicted, or whether it is a surprise.
    """

    formula: Formula | None = None
    meanings: tuple[tuple[str, Formula], ...] = ()
    contradicted: tuple[str, ...] | None = None
    surprises: bool = False
    negation: bool = True
    unanswered: str | None = None
    untold: str | None = None


NOTHING_TO_ASSESS = Assessment()


def assess(run: Run, operation: Operation) -> Assessment | Refusal:
    """Why the model refuses an operation that brings a formula, or what it says of it."""
    try:
        brought = _brought(operation)
    except FormulaError as unreadable:
        return Refusal(RejectionCode.BOUND_EXCEEDED, str(unreadable), ())
    model = run.state.model
    before = model.spoken_of
    assessed = _answered(run, operation, brought)
    if isinstance(assessed, Refusal) or assessed.unanswered is not None:
        model.speak_only_of(before)
    return assessed


def _answered(run: Run, operation: Operation, brought: Assessment) -> Assessment | Refusal:
    meanings = [Implies(Atom(record), formula) for record, formula in brought.meanings]
    try:
        run.state.model.speak_of(meanings)
        for meaning in meanings:  # each once, so that a bound shows now
            run.state.model.possible(meaning)
        return _assess(run, operation, brought)
    except (BoundExceeded, CommonKnowledgeUndefined) as unanswered:
        if operation.op in ("observe", "revise"):
            return brought._replace(unanswered=str(unanswered))
        is_bound = isinstance(unanswered, BoundExceeded)
        code = RejectionCode.BOUND_EXCEEDED if is_bound else RejectionCode.INCONSISTENT_WITH_MODEL
        return Refusal(code, str(unanswered), ())


def brings_formula(state: State, operation: Operation) -> bool:
    """Whether the operation gives the model something to check."""
    match operation.op:
        case "observe" | "hypothesize":
            return operation.formula is not None or _any_inline(operation.premises)
        case "support" | "undermine":
            return _any_inline((operation.evidence,))
        case "revise":
            return _any_inline((operation.by,)) or (
                operation.negates and _has_formula(state, operation.target)
            )
        case "resolve":
            decision = () if operation.decision is None else (operation.decision,)
            return _any_inline((*operation.premises, *decision)) or (
                operation.mode == "consensual" and _has_formula(state, operation.target)
            )
        case "expand_awareness" | "question":
            return False
        case _:
            assert_never(operation)


def _assess(run: Run, operation: Operation, brought: Assessment) -> Assessment | Refusal:
    match operation.op:
        case "observe":
            return brought if brought.formula is None else _assess_observe(run, operation, brought)
        case "hypothesize":
            return _hypothesis_refusal(run, operation, brought.formula) or brought
        case "revise":
            return brought._replace(negation=_can_be_negated(run, operation))
        case "resolve":
            return _resolution_refusal(run, operation) or brought
        case "support" | "undermine" | "expand_awareness" | "question":
            return brought
        case _:
            assert_never(operation)


def _brought(operation: Operation) -> Assessment:
    """The formulas that the operation brings, before anybody has looked at them."""
    own = operation.formula if isinstance(operation, Observe | Hypothesize) else None
    return Assessment(
        formula=None if own is None else formula_of(own),
        meanings=tuple(
            (inline.record, formula_of(inline.formula))
            for inline in _inline_records(operation)
            if inline.formula is not None
        ),
    )


def _assess_observe(run: Run, operation: Observe, brought: Assessment) -> Assessment:
    """Possible together with what the turn announces already, in the model before the turn."""
    formula = brought.formula
    assert formula is not None
    model = run.state.model
    speaker = operation.speaker or run.speaker
    hearers = tuple(sorted({*run.state.hearers(run.audience), speaker}))
    announcement = And((Atom(operation.record), formula))
    model.speak_of([announcement])
    together = run.announced_together()
    is_possible = model.possible_with(together, announcement)
    contradicted: tuple[str, ...] | None = None if is_possible else ()
    surprises = False
    try:
        surprises = is_surprise(model, hearers, formula)
        if contradicted is not None:
            with model.supposing(And((*together.formulas, announcement))):
                for update in run.announced:
                    model.append(update)
                contradicted = contradicted_records(model, operation.record, formula)
    except BoundExceeded as bound:
        brought = brought._replace(untold=str(bound))
    return brought._replace(contradicted=contradicted, surprises=surprises)


def _hypothesis_refusal(
    run: Run, operation: Hypothesize, formula: Formula | None
) -> Refusal | None:
    if formula is None:
        return None
    records = run.state.records
    explained = [(id_, records[id_].formula) for id_ in operation.explains if id_ in records]
    speaker = operation.speaker or run.speaker
    code = hypothesis_rejection(
        run.state.model, speaker, operation.record, formula, explained, run.audience
    )
    if code is None:
        return None
    return Refusal(code, _HYPOTHESIS_REASONS[code], (operation.record, *operation.explains))


_HYPOTHESIS_REASONS = {
    RejectionCode.INCONSISTENT_WITH_MODEL: "the speaker believes that it is false",
    RejectionCode.ALREADY_BELIEVED: "the speaker believes it already",
    RejectionCode.NOT_EXPLANATORY: "what it explains would still not be believed",
}


def _can_be_negated(run: Run, operation: Revise) -> bool:
    """Whether the target can be false once nothing stands for it any more."""
    if not operation.negates or not _has_formula(run.state, operation.target):
        return True
    model = run.state.model
    with model.supposing(Atom(operation.target)):
        model.contract(operation.target)
        return model.possible(Not(Atom(operation.target)))


def _resolution_refusal(run: Run, operation: Resolve) -> Refusal | None:
    if operation.mode == "authoritative" or not _has_formula(run.state, operation.target):
        return None
    if run.state.model.possible(Atom(operation.target)):
        return None
    return Refusal(
        RejectionCode.INCONSISTENT_WITH_MODEL,
        f"{operation.target!r} is false in every world that is left",
        (operation.target,),
    )


def _inline_records(operation: Operation) -> Iterator[InlineRecord]:
    """Every record the operation introduces inline, nested ones before the one that cites them."""
    match operation.op:
        case "observe" | "hypothesize":
            references: tuple[Reference, ...] = operation.premises
        case "support" | "undermine":
            references = (operation.evidence,)
        case "revise":
            references = (operation.by,)
        case "resolve":
            decision = () if operation.decision is None else (operation.decision,)
            references = (*operation.premises, *decision)
        case "expand_awareness" | "question":
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
