"""Long logs and many variables: what is not evaluated, and how long the rest takes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from processor.engine.plausibility.abduction import contradicted_records, hypothesis_rejection
from processor.engine.plausibility.bounds import Bounds
from processor.engine.plausibility.diagrams import DiagramSet
from processor.engine.plausibility.evaluator import Evaluator
from processor.engine.plausibility.formula import And, Atom, Formula, Implies, Not, Or
from processor.engine.plausibility.model import Model
from processor.engine.plausibility.syntax import parse
from processor.engine.plausibility.update import Update, UpdateKind
from tests.plausibility.drawn import fill
from tests.plausibility.said import holds

Benchmark = Callable[[Callable[[], object]], object]


def bare_log(length: int) -> list[Update]:
    """A conversation without formulas: observations, hypotheses, supports, some underminings."""
    log: list[Update] = []
    for turn in range(length):
        seen, guessed = f"o{turn - turn % 4}", f"h{turn - turn % 4}"
        if turn % 4 == 0:
            kind, formula, tags = UpdateKind.ANNOUNCEMENT, Atom(seen), (seen,)
        elif turn % 4 == 1:
            kind, formula, tags = UpdateKind.RADICAL, Atom(guessed), (guessed,)
        elif turn % 4 == 2 or turn % 3:
            kind, formula, tags = UpdateKind.CONSERVATIVE, Atom(guessed), (guessed, seen)
        else:
            attacked = f"h{max(0, turn - turn % 4 - 4 * (turn % 5))}"
            kind, formula, tags = UpdateKind.CONSERVATIVE, Not(Atom(attacked)), (seen,)
        log.append(Update(turn, kind, formula, tags))
    return log


def written_log(hypotheses: int) -> list[Update]:
    """Twice as many variables as hypotheses, each of which is explained, upgraded and doubted."""
    chance = Random(5)
    log: list[Update] = []
    for number in range(hypotheses):
        near = [f"p{min(hypotheses - 1, max(0, number + chance.randint(-3, 3)))}" for _ in "xy"]
        cause: Formula = And((Atom(f"p{number}"), Implies(Atom(near[0]), Atom(near[1]))))
        name = f"h{number}"
        doubt = Not(Atom(f"h{chance.randint(0, number)}"))
        support = Or((Atom(near[0]), Not(Atom(near[1]))))
        kind = UpdateKind.CONSERVATIVE if number % 2 else UpdateKind.RADICAL
        log.append(Update(number, UpdateKind.LAW, Implies(Atom(name), cause), (name,)))
        log.append(Update(number, UpdateKind.RADICAL, Atom(name), (name,)))
        log.append(Update(number, kind, support, (f"e{number}",)))
        log.append(Update(number, UpdateKind.CONSERVATIVE, doubt, (f"d{number}",)))
    return log


def test_appending_evaluates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand entries, contractions and rollbacks included, ask for no world set."""
    monkeypatch.setattr(Evaluator, "ask", None)
    model = Model()
    mark = model.mark()
    fill(model, bare_log(10_000))
    assert len(model.contract("h2000")) == 3
    assert len(model.updates_of_turn(77)) == 1
    model.rollback(mark)
    assert list(model.updates()) == []


def test_a_long_bare_log_still_answers() -> None:
    """One belief in a conversation of ten thousand turns is found among those that touch it."""
    model = fill(Model(), bare_log(10_000))
    assert holds(model, "B_a h4000 & ~K_a h4000 & K_a o4000")
    assert holds(model, "B_a ~h9980")
    model.contract("o9995")
    assert holds(model, "B_a h4000")


def test_two_hundred_variables_are_no_list_of_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three hundred upgrades over two hundred variables stay small, and no world is listed."""
    monkeypatch.setattr(DiagramSet, "assignments", None)
    model = fill(Model(Bounds(nodes=20_000)), written_log(100))
    assert holds(model, "B_a (h99 -> p99) & K_a (h20 -> p20)")
    assert not holds(model, "K_a h20 | K_a ~h20")
    assert hypothesis_rejection(model, "a", "hx", parse("p3 & p5"), [("h90", None)], None) is None
    assert contradicted_records(model, "ox", parse("h20 & ~p20")) == ("h20",)
    assert model.world_count() == 1


@pytest.mark.bench
def test_append(benchmark: Benchmark) -> None:
    """Appending ten thousand bare entries."""
    log = bare_log(10_000)
    benchmark(lambda: fill(Model(), log))


@pytest.mark.bench
@pytest.mark.parametrize("length", [3_000, 10_000])
def test_first_belief(benchmark: Benchmark, length: int) -> None:
    """The first belief asked of a bare log, replay included."""
    log = bare_log(length)
    assert benchmark(lambda: fill(Model(), log).believes("a", Atom("h400")))


@pytest.mark.bench
def test_written_belief(benchmark: Benchmark) -> None:
    """The first belief over two hundred variables and three hundred upgrades."""
    log = written_log(100)
    benchmark(lambda: fill(Model(), log).believes("a", parse("p50 | h20")))


@pytest.mark.bench
def test_next_belief(benchmark: Benchmark) -> None:
    """The same, once more upgrade has been appended to a model that was asked before."""
    model = fill(Model(), written_log(100))
    model.believes("a", parse("p50 | h20"))

    def next_belief() -> bool:
        model.append(Update(999, UpdateKind.RADICAL, parse("h7 | ~p8")))
        return model.believes("a", parse("p50 | h20"))

    benchmark.pedantic(next_belief, rounds=100)  # each makes the model longer, which has a bound
