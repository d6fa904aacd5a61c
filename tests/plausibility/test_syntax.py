"""The text and the wire form of formulas."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from processor.engine.plausibility.formula import (
    DEPTH_MAX,
    And,
    Atom,
    Aware,
    Believes,
    Common,
    Constant,
    Explicit,
    Formula,
    FormulaError,
    Iff,
    Implies,
    Knows,
    Not,
    Or,
    atoms,
    from_wire,
    to_wire,
)
from processor.engine.plausibility.syntax import parse, to_text
from schemas.formula import FORMULA_CHARS_MAX, FORMULA_PARTS_MAX, NotNode
from tests.strategies import NAMES, RECORD_IDS

P, Q, R, S = (Atom(name) for name in "pqrs")

READINGS: list[tuple[str, Formula]] = [
    ("p", P),
    ("true", Constant(True)),
    ("false", Constant(False)),
    ("o8'", Atom("o8'")),
    ("mis_monitor", Atom("mis_monitor")),
    ("svc/x", Atom("svc/x")),
    ("o1.2", Atom("o1.2")),
    ("a-b", Atom("a-b")),
    ("a-b->c", Implies(Atom("a-b"), Atom("c"))),
    ('"and"', Atom("and")),
    *((f"{sign}p", Not(P)) for sign in ("~", "!", "¬", "not ", "~ ")),
    *((f"p {sign} q", And((P, Q))) for sign in ("&", "&&", "∧", "and")),
    *((f"p {sign} q", Or((P, Q))) for sign in ("|", "||", "\N{LOGICAL OR}", "or")),
    *((f"p {sign} q", Implies(P, Q)) for sign in ("->", "=>", "→", "implies")),
    *((f"p {sign} q", Iff(P, Q)) for sign in ("<->", "<=>", "↔", "iff")),
    ("p&q&r", And((P, Q, R))),
    ("(p & q) & r", And((And((P, Q)), R))),
    ("p -> q -> r", Implies(P, Implies(Q, R))),
    ("(p -> q) -> r", Implies(Implies(P, Q), R)),
    ("p <-> q <-> r", Iff(P, Iff(Q, R))),
    ("~p & q | r -> s", Implies(Or((And((Not(P), Q)), R)), S)),
    ("p -> q <-> r", Iff(Implies(P, Q), R)),
    ("K_a p", Knows("a", P)),
    ("K[a] p", Knows("a", P)),
    ("K_{a} p", Knows("a", P)),
    ("B_bob.x ~p", Believes("bob.x", Not(P))),
    ("X_a p", Explicit("a", P)),
    ("aware_a p", Aware("a", P)),
    ("A[a] p", Aware("a", P)),
    ("aware[a] p", Aware("a", P)),
    ("C_{a,b, c} p", Common(("a", "b", "c"), P)),
    ("C[a,b] (p & q)", Common(("a", "b"), And((P, Q)))),
    ("~K_a m_a", Not(Knows("a", Atom("m_a")))),
    ("K_a p & q", And((Knows("a", P), Q))),
    ("K_a K_b p", Knows("a", Knows("b", P))),
    ("K_a not p", Knows("a", Not(P))),
    ("K_a", Atom("K_a")),
    ("K_a & p", And((Atom("K_a"), P))),
    ("K_a K_b", Knows("a", Atom("K_b"))),
    ("K_a and B_b", And((Atom("K_a"), Atom("B_b")))),
    ("K -> C", Implies(Atom("K"), Atom("C"))),
    ("K[true] p", Knows("true", P)),
    ("  p\n&\tq ", And((P, Q))),
]

FAULTS = [
    ("", 0, "expected a formula"),
    ("p &", 3, "expected a formula"),
    ("& p", 0, "expected a formula"),
    ("p q", 2, "does not belong here"),
    ("A_a p", 4, "does not belong here"),
    ("(p", 2, "closing parenthesis"),
    ("p)", 1, "does not belong here"),
    ("p # q", 2, "no meaning"),
    ("p - q", 2, "no meaning"),
    ("p & _x", 4, "no meaning"),
    ('p & "q', 4, "no meaning"),
    ('"a b"', 0, "no name of a variable"),
    ("x" * 129, 0, "no name of a variable"),
    ("K[a]", 4, "expected a formula"),
    ("K[a, b] p", 0, "one agent"),
    ("K[] p", 2, "name of an agent"),
    ("K_x' p", 2, "name of an agent"),
    ("C[a} p", 3, "expected ','"),
    ("C[a", 3, "expected ','"),
    ("~" * 8_192, DEPTH_MAX - 1, "levels deep"),
    ("(" * 8_192, DEPTH_MAX, "levels deep"),
    ("K_a " * 2_048, 4 * (DEPTH_MAX - 1), "levels deep"),
    ("p -> " * 1_000 + "p", 5 * DEPTH_MAX, "levels deep"),
    ("&".join(["p"] * (FORMULA_PARTS_MAX + 1)), 2 * FORMULA_PARTS_MAX - 1, "in a row"),
    ("p" * (FORMULA_CHARS_MAX + 1), FORMULA_CHARS_MAX, "longer"),
    ("C[" + ",".join(["a"] * 65) + "] p", 130, "agents in a group"),
]


@pytest.mark.parametrize(("text", "formula"), READINGS, ids=[text for text, _ in READINGS])
def test_texts_mean_what_they_say(text: str, formula: Formula) -> None:
    """Every spelling gives its formula, and what is printed of it reads back as the same one."""
    assert parse(text) == formula
    assert parse(to_text(formula)) == formula


@pytest.mark.parametrize(("text", "position", "reason"), FAULTS, ids=[f[0][:20] for f in FAULTS])
def test_faults_are_placed(text: str, position: int, reason: str) -> None:
    """What is no formula says where the first fault is and what it is."""
    with pytest.raises(FormulaError, match=r"^at character \d+: ") as caught:
        parse(text)
    assert caught.value.position == position
    assert reason in caught.value.reason


def test_the_deepest_formula_is_read() -> None:
    """A formula of exactly the greatest depth is accepted, with parentheses or without."""
    bare = "~" * (DEPTH_MAX - 1) + "p"
    assert parse(bare) == parse("~(" * (DEPTH_MAX - 1) + "p" + ")" * (DEPTH_MAX - 1))


def _formula_or_fault(text: str) -> Formula | FormulaError:
    try:
        return parse(text)
    except FormulaError as fault:
        return fault


SOUP = st.lists(
    st.sampled_from(
        [
            *("p", "q", "and", "not", "true", "K", "K_a", "K_", "C_", "A[a]", "C[a,b]", "aware_b"),
            *("(", ")", "[", "]", "{", "}", ",", "~", "&", "|", "->", "<->", '"', "-", "'", " "),
        ]
    ),
    max_size=30,
).map(" ".join)


@settings(max_examples=400)
@given(st.one_of(SOUP, st.text(max_size=60)))
@example("K_a~p")
@example("\x1c~p\x85")
def test_any_text_is_a_formula_or_a_fault(text: str) -> None:
    """Any text is refused with a place inside it, or gives a formula that reads back the same."""
    formula = _formula_or_fault(text)
    if isinstance(formula, FormulaError):
        assert 0 <= formula.position <= len(text)
        return
    assert parse(to_text(formula)) == formula
    assert from_wire(to_wire(formula)) == formula


def _larger(smaller: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    several = st.lists(smaller, min_size=2, max_size=4).map(tuple)
    groups = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Not, smaller),
        st.builds(And, several),
        st.builds(Or, several),
        st.builds(Implies, smaller, smaller),
        st.builds(Iff, smaller, smaller),
        st.builds(Knows, NAMES, smaller),
        st.builds(Believes, NAMES, smaller),
        st.builds(Common, groups, smaller),
        st.builds(Aware, NAMES, smaller),
        st.builds(Explicit, NAMES, smaller),
    )


NAMED = st.one_of(RECORD_IDS, st.sampled_from(["and", "true", "iff", "K_a", "C_", "B", "x-", "X'"]))
TREES: st.SearchStrategy[Formula] = st.recursive(
    st.one_of(NAMED.map(Atom), st.booleans().map(Constant)), _larger, max_leaves=12
)


@settings(max_examples=150)
@given(TREES)
def test_printing_and_the_wire_lose_nothing(formula: Formula) -> None:
    """Text and wire tree of any formula give the same formula again, whatever its names."""
    assert parse(to_text(formula), chars_max=100_000) == formula
    assert from_wire(to_wire(formula)) == formula


def test_a_deep_wire_tree_is_refused() -> None:
    """A wire tree beyond the depth is a FormulaError, not an exhausted stack."""
    node = to_wire(P)
    for _ in range(20_000):
        node = NotNode.model_construct(node="not", formula=node)
    with pytest.raises(FormulaError, match="levels deep"):
        from_wire(node)


def test_a_wide_wire_tree_is_refused() -> None:
    """A wire tree with more nodes than a text could have is a FormulaError."""
    row = And((P,) * FORMULA_PARTS_MAX)
    with pytest.raises(FormulaError, match="more than 8192 nodes"):
        from_wire(to_wire(And((row,) * 40)))


def test_atoms_come_in_order_and_once() -> None:
    """The variables of a formula are listed by first occurrence, also under modalities."""
    assert atoms(parse("q -> K_a (p & q) | aware_b r")) == ("q", "p", "r")
