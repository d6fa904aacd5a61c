"""The model against the textbook: every answer, after appending, contraction and rollback."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.engine.plausibility import diagrams
from processor.engine.plausibility.bounds import CommonKnowledgeUndefined
from processor.engine.plausibility.evaluator import EngineName
from processor.engine.plausibility.formula import Atom, Believes, Formula, Knows, Not
from processor.engine.plausibility.libraries import PythonManager
from processor.engine.plausibility.model import Model
from processor.engine.plausibility.update import Update
from tests.plausibility.drawn import (
    AGENTS,
    RECORDS,
    VARIABLES,
    Raised,
    awareness_of,
    fill,
    formulas,
    literals,
    logs,
    raised,
    textbook_of,
)

ALWAYS_ASKED: list[Formula] = [
    *(Believes("a", Atom(name)) for name in VARIABLES),
    *(Believes(agent, Not(Atom("q"))) for agent in AGENTS),
    Knows("c", Atom("r")),
]
ENGINES: tuple[EngineName, ...] = ("explicit", "diagrams")
questions = st.lists(formulas, min_size=1, max_size=3)
bare_or_not = st.one_of(literals, literals, formulas)


def _answer(ask: Callable[[Formula], bool], formula: Formula) -> bool | str:
    try:
        return ask(formula)
    except CommonKnowledgeUndefined:
        return "undefined"


def _check(
    models: Sequence[Model],
    log: Sequence[Update],
    expansions: Sequence[Raised],
    asked: Sequence[Formula],
) -> None:
    textbook = textbook_of(log, expansions)
    for formula in (*asked, *ALWAYS_ASKED):
        holds = _answer(textbook.holds, formula)
        possible = _answer(textbook.possible, formula)
        for model in models:
            assert _answer(model.holds, formula) == holds
            assert _answer(model.possible, formula) == possible


def _check_life(
    models: Sequence[Model],
    log: list[Update],
    more: list[Update],
    expansions: Sequence[Raised],
    asked: Sequence[Formula],
    record: str,
) -> None:
    """Ask a log, contract it, append to it, and take all that back; ask after every step."""
    for model in models:
        fill(model, log)
    _check(models, log, expansions, asked)
    marks = [model.mark() for model in models]
    contracted = [update for update in log if record not in update.tags]
    for model in models:
        dropped = model.contract(record)
        assert list(dropped) == [update for update in log if record in update.tags]
    _check(models, contracted, expansions, asked)
    for model in models:
        fill(model, more)
    _check(models, contracted + more, expansions, asked)
    for model, mark in zip(models, marks, strict=True):
        model.rollback(mark)
        assert list(model.updates()) == log
    _check(models, log, expansions, asked)


@pytest.mark.parametrize(
    "content", [formulas, bare_or_not, literals], ids=["formulas", "mixed", "bare"]
)
@settings(max_examples=25)
@given(data=st.data())
def test_every_answer_is_the_textbooks(
    content: st.SearchStrategy[Formula], data: st.DataObject
) -> None:
    """Both kinds of world sets answer like explicit preorders: K, B, C, aware and X alike."""
    expansions = data.draw(raised)
    models = [Model(engine=engine, awareness=awareness_of(expansions)) for engine in ENGINES]
    _check_life(
        models,
        data.draw(logs(content)),
        data.draw(logs(content, turns_max=2, after=4)),
        expansions,
        data.draw(questions),
        data.draw(st.sampled_from(RECORDS)),
    )


@settings(max_examples=15)
@given(
    logs(bare_or_not), logs(bare_or_not, turns_max=2, after=4), questions, st.sampled_from(RECORDS)
)
def test_the_pure_library_answers_the_same(
    log: list[Update], more: list[Update], asked: list[Formula], record: str
) -> None:
    """Without CUDD nothing changes but the speed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagrams, "open_manager", PythonManager)
        _check_life([Model(engine="diagrams")], log, more, (), asked, record)


@settings(max_examples=30)
@given(logs(bare_or_not), questions)
def test_asking_early_changes_nothing(log: list[Update], asked: list[Formula]) -> None:
    """A model that is asked after every update ends up with the answers of one asked at the end."""
    early, late = Model(), Model()
    for update in log:
        early.append(update)
        for formula in asked:
            _answer(early.holds, formula)
    fill(late, log)
    for formula in (*asked, *ALWAYS_ASKED):
        assert _answer(early.holds, formula) == _answer(late.holds, formula)
