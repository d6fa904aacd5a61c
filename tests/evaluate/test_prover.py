"""The prover: against truth tables, and what it refuses to read."""

from __future__ import annotations

from itertools import product

import pytest

from replay.evaluate.prover import (
    Formula,
    NotAFormula,
    entails,
    is_consistent,
    names_in,
    read_formula,
)

OR = "\N{LOGICAL OR}"


def read(*texts: str) -> list[Formula]:
    """The formulas over the names that they mention."""
    names = names_in(texts)
    return [read_formula(text, names) for text in texts]


def is_true(formula: Formula, model: dict[str, bool]) -> bool:
    """The truth of a formula by its table, without any short cut."""
    operator, *parts = formula
    if operator == "atom":
        return model[str(parts[0])]
    if operator == "false":
        return False
    values = [is_true(part, model) for part in parts if isinstance(part, tuple)]
    if operator == "not":
        return not values[0]
    left, right = values
    tables = {
        "and": left and right,
        "or": left or right,
        "either": left is not right,
        "if": not left or right,
        "iff": left is right,
    }
    return tables[str(operator)]


def atoms_of(formula: Formula) -> list[str]:
    """The atoms of a formula."""
    if formula[0] == "atom":
        return [str(formula[1])]
    return [name for part in formula[1:] if isinstance(part, tuple) for name in atoms_of(part)]


@pytest.mark.parametrize(
    ("premises", "conclusion"),
    [
        (("p(A)", "∀x (p(x) → q(x))"), "q(A)"),
        (("p(A) ⊕ q(A)", "p(A)"), "¬q(A)"),
        ((f"p(A) {OR} q(A)", "¬p(A)"), "q(A)"),
        (("p(A) → (q(A) ∧ r(A))", "p(A)"), "r(A)"),
        (("p(A) ↔ q(A)", "q(A)"), "p(A)"),
        (("p(A) → q(A) → r(A)", "p(A)", "q(A)"), "r(A)"),
        (("p(A) → false",), "¬p(A)"),
        (("∀x (-(p(x) ↔ q(x)) → r(x))", "p(A)", "¬q(A)"), "r(A)"),
        (("∀x (p(x) → q(x))", "p(A)", "¬q(B)"), "¬p(B)"),
    ],
)
def test_what_follows_is_proved_and_its_negation_is_not(
    premises: tuple[str, ...], conclusion: str
) -> None:
    """A conclusion follows, its negation does not, and a truth table says the same."""
    *formulas, goal = read(*premises, conclusion)
    assert is_consistent(formulas)
    assert entails(formulas, goal)
    assert not entails(formulas, ("not", goal))
    atoms = sorted(dict.fromkeys(name for each in (*formulas, goal) for name in atoms_of(each)))
    for values in product((False, True), repeat=len(atoms)):
        model = dict(zip(atoms, values, strict=True))
        if all(is_true(formula, model) for formula in formulas):
            assert is_true(goal, model)


def test_what_is_open_follows_neither_way() -> None:
    """Neither an alternative nor its converse decides one side."""
    either, goal = read("p(A) ⊕ q(A)", "p(A)")
    assert not entails([either], goal)
    assert not entails([either], ("not", goal))


def test_a_contradiction_is_seen() -> None:
    """Premises that cannot be true together are inconsistent, and then everything follows."""
    formulas = read("p(A)", "p(A) → q(A)", "¬q(A)")
    assert not is_consistent(formulas)
    assert entails(formulas, read("r(A)")[0])


def test_a_full_stop_is_nothing() -> None:
    """Some published formulas end with one."""
    assert read("¬p(A).") == read("¬p(A)")


@pytest.mark.parametrize("text", ["p(A) q(A)", "(p(A)", "p(A) →", "p(A))", "∀x p(x)", "", "p ∧ q"])
def test_what_is_no_formula_is_refused(text: str) -> None:
    """A text that does not parse, or speaks of nothing that is named, raises."""
    with pytest.raises(NotAFormula):
        read(text)
