"""The muddy children (paper, section B.1), asked of the model directly.

Alice and Bob are muddy, Carol is clean; each sees the other two. The father says that somebody is
muddy, then all say at once whether they know.
"""

from __future__ import annotations

import pytest

from processor.engine.plausibility.evaluator import EngineName
from processor.engine.plausibility.model import Model
from processor.engine.plausibility.syntax import parse
from processor.engine.plausibility.update import Update
from tests.plausibility.said import announce, holds, sees, variable

CHILDREN = "abc"
FATHER = announce("o0 & (m_a | m_b | m_c)", "o0", turn=1)
IGNORANCE = [
    announce(f"n_{child} & ~K_{child} m_{child}", f"n_{child}", turn=2, at_once=True)
    for child in CHILDREN
]
ANSWERS = [
    announce("r_a & K_a m_a", "r_a", turn=3, at_once=True),
    announce("r_b & K_b m_b", "r_b", turn=3, at_once=True),
]
ACTUAL = "m_a & m_b & ~m_c"
KNOWN = {child: f"(K_{child} m_{child} | K_{child} ~m_{child})" for child in CHILDREN}


def _children(engine: EngineName = "auto", *updates: Update) -> Model:
    model = Model(engine=engine)
    for child in CHILDREN:
        model.append(variable(f"m_{child}"))
    for child in CHILDREN:
        model.append(sees(child, *(f"m_{other}" for other in CHILDREN if other != child)))
    for update in updates:
        model.append(update)
    return model


def _muddy(model: Model) -> list[str]:
    """Each world as the letters of the muddy children."""
    return ["".join(c for c in CHILDREN if f"m_{c}" in world) for world in model.worlds()]


@pytest.mark.parametrize("engine", ["explicit", "diagrams"])
def test_the_worlds_go_from_eight_to_one(engine: EngineName) -> None:
    """There are eight worlds, then all but the clean one, four with two muddy ones, and one."""
    model = _children(engine)
    assert model.world_count() == 8
    assert _muddy(model) == ["abc", "ab", "ac", "a", "bc", "b", "c", ""]
    model.append(FATHER)
    assert model.world_count() == 7
    assert _muddy(model) == ["abc", "ab", "ac", "a", "bc", "b", "c"]
    for update in IGNORANCE:
        model.append(update)
    assert model.world_count() == 4
    assert _muddy(model) == ["abc", "ab", "ac", "bc"]
    for update in ANSWERS:
        model.append(update)
    assert model.world_count() == 1
    assert _muddy(model) == ["ab"]


def test_nobody_knows_after_the_father() -> None:
    """With two muddy children nobody knows its own state from the father's words."""
    model = _children("auto", FATHER)
    for child in CHILDREN:
        assert holds(model, f"{ACTUAL} -> ~{KNOWN[child]}")
    assert holds(model, "m_a & ~m_b & ~m_c -> K_a m_a"), "a single one would know"


def test_the_muddy_ones_know_after_the_round() -> None:
    """Once all have said that they do not know, the two muddy ones do, and Carol does not."""
    model = _children("auto", FATHER, *IGNORANCE)
    assert holds(model, f"{ACTUAL} -> K_a m_a & K_b m_b")
    assert holds(model, f"{ACTUAL} -> ~{KNOWN['c']}")


def test_carol_knows_one_turn_later() -> None:
    """From the answers of the two Carol learns that she is clean."""
    model = _children("auto", FATHER, *IGNORANCE, *ANSWERS)
    assert holds(model, "K_c ~m_c")
    assert holds(model, f"C[a,b,c] ({ACTUAL})")


def test_what_is_common_knowledge_when() -> None:
    """At first nothing, then that somebody is muddy, then that two are."""
    somebody = parse("C[a,b,c] (m_a | m_b | m_c)")
    two = parse("C[a,b,c] (m_a & m_b | m_a & m_c | m_b & m_c)")
    model = _children()
    assert not model.possible(somebody)
    assert holds(model, f"{ACTUAL} -> K_a (m_a | m_b | m_c) & K_b (m_a | m_b | m_c)")
    model.append(FATHER)
    assert model.holds(somebody)
    assert not model.possible(two)
    for update in IGNORANCE:
        model.append(update)
    assert model.holds(two)
    assert not model.possible(parse(f"C[a,b,c] ({ACTUAL})"))


def test_said_one_after_the_other_the_second_already_knows() -> None:
    """Once Alice alone has said that she does not know, Bob knows, and could not say the same."""
    alice = announce("n_a & ~K_a m_a", "n_a", turn=2)
    bob = announce("n_b & ~K_b m_b", "n_b", turn=3)
    model = _children("auto", FATHER, alice)
    assert holds(model, f"{ACTUAL} -> K_b m_b")
    model.append(bob)
    assert _muddy(model) == ["abc", "ac", "bc", "c"], "the actual world would be gone"
    at_once = _children("auto", FATHER, *IGNORANCE[:2])
    assert _muddy(at_once) == ["abc", "ab", "ac", "bc", "c"]


def test_a_retracted_round_is_undone() -> None:
    """Without the father's words the round says nothing, and all eight worlds are back."""
    model = _children("auto", FATHER, *IGNORANCE)
    assert model.world_count() == 4
    assert model.contract("o0") == (FATHER,)
    assert model.world_count() == 8
