"""Abduction: which hypotheses may be proposed, what contradicts what, and what surprises.

Definition A.2 (an abductive solution is consistent, explanatory and not trivial), tested in the
model without what is to be explained: once an observation is announced everybody knows it, and
nothing would be left to explain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from processor.engine.plausibility.formula import And, Atom, Believes, Formula, Implies, Not
from processor.engine.plausibility.model import Model
from processor.engine.plausibility.update import Audience, Update, UpdateKind
from schemas.log import RejectionCode


def hypothesis_rejection(
    model: Model,
    speaker: str,
    record: str,
    formula: Formula,
    explained: Sequence[tuple[str, Formula | None]],
    audience: Audience,
) -> RejectionCode | None:
    """Why the speaker may not propose `formula` as the content of `record`; None if it may.

    `explained` are the records to be explained and their contents; one without a formula is taken
    out of the model, but not checked. The speaker belongs to the audience. The model is left as it
    was. Raises BoundExceeded, and CommonKnowledgeUndefined.
    """
    content = And((Atom(record), formula))
    meaning = Implies(Atom(record), formula)
    observations = [observation for _, observation in explained if observation is not None]
    with model.supposing(Believes(speaker, And((content, *observations)))):
        for explained_record, _ in explained:
            model.contract(explained_record)
        model.possible(meaning)  # what nobody could evaluate must not enter the log
        if model.believes(speaker, Not(content)):
            return RejectionCode.INCONSISTENT_WITH_MODEL
        if model.believes(speaker, content):
            return RejectionCode.ALREADY_BELIEVED
        turn = 1 + model.last_turn
        model.append(Update(turn, UpdateKind.LAW, meaning, audience=audience))
        model.append(Update(turn, UpdateKind.RADICAL, Atom(record), audience=audience))
        if not all(model.believes(speaker, observation) for observation in observations):
            return RejectionCode.NOT_EXPLANATORY
    return None


def contradicted_records(model: Model, record: str, formula: Formula) -> tuple[str, ...]:
    """A minimal set of records that `record & formula` contradicts.

    Together they rule it out; without any one of them they do not. Of several such sets, one of
    later records is preferred. Empty if it is possible as it is, or if what no record stands for
    rules it out alone. The model is left as it was. Raises BoundExceeded, and
    CommonKnowledgeUndefined.
    """
    content = And((Atom(record), formula))
    candidates = model.lawful_records(content)

    @cache
    def is_ruled_out_by(kept: tuple[str, ...]) -> bool:
        keeps = frozenset(kept)
        with model.supposing(content):
            for each in candidates:
                if each not in keeps:
                    model.contract(each)
            return not model.possible(content)

    if not is_ruled_out_by(candidates) or is_ruled_out_by(()):
        return ()
    return _minimal(candidates, (), is_ruled_out_by)


def _minimal(
    candidates: tuple[str, ...],
    taken: tuple[str, ...],
    suffices: Callable[[tuple[str, ...]], bool],
) -> tuple[str, ...]:
    """QuickXplain (Junker 2004): a minimal part of the candidates that suffices with `taken`.

    All candidates suffice, and more never hurts; earlier ones are preferred. The depth is the
    logarithm of their number.
    """
    if suffices(taken):
        return ()
    if len(candidates) == 1:
        return candidates
    middle = len(candidates) // 2
    earlier, later = candidates[:middle], candidates[middle:]
    of_later = _minimal(later, taken + earlier, suffices)
    of_earlier = _minimal(earlier, taken + of_later, suffices)
    return of_earlier + of_later


def is_surprise(model: Model, hearers: Sequence[str], formula: Formula) -> bool:
    """Whether none of the hearers believes the formula (Definition A.2, the surprise check)."""
    return not model.is_believed_by_any(hearers, formula)
