"""Hypotheses, contradictions and surprises (Definition A.2)."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.engine.plausibility.abduction import (
    contradicted_records,
    hypothesis_rejection,
    is_surprise,
)
from processor.engine.plausibility.bounds import CommonKnowledgeUndefined
from processor.engine.plausibility.formula import And, Atom, Formula
from processor.engine.plausibility.model import Model
from processor.engine.plausibility.syntax import parse
from processor.engine.plausibility.update import Update
from schemas.log import RejectionCode
from tests.plausibility.drawn import plain_formulas
from tests.plausibility.said import announce, conservative, holds, law, model_of, radical

TRAFFIC = ("o6", parse("p_traffic"))
SEEN = announce("o6 & p_traffic", "o6")


def _rejection(model: Model, formula: str, *explained: tuple[str, Formula | None]) -> str | None:
    return hypothesis_rejection(model, "a", "h", parse(formula), explained, None)


def test_a_hypothesis_asserts_its_cause() -> None:
    """A cause that brings about the effect explains it; the bare implication does not."""
    model = model_of(SEEN)
    assert _rejection(model, "tok_bug & (tok_bug -> p_traffic)", TRAFFIC) is None
    assert _rejection(model, "tok_bug -> p_traffic", TRAFFIC) is RejectionCode.NOT_EXPLANATORY


def test_what_is_explained_is_taken_out_first() -> None:
    """The observation is known, so nothing would explain it if it stayed in the model."""
    model = model_of(SEEN)
    assert holds(model, "K_a p_traffic")
    assert _rejection(model, "q", TRAFFIC) is RejectionCode.NOT_EXPLANATORY
    assert _rejection(model, "q") is None, "a hypothesis that explains nothing need not explain"
    assert _rejection(model, "q", ("o6", None)) is None, "nor one whose observation has no content"


def test_what_the_speaker_disbelieves_is_inconsistent() -> None:
    """Belief in the contrary is enough, knowledge is not needed, and others do not matter."""
    believes = model_of(radical("~q", "h1", ("a",)))
    assert _rejection(believes, "q") is RejectionCode.INCONSISTENT_WITH_MODEL
    assert hypothesis_rejection(believes, "b", "h", parse("q"), (), None) is None
    assert _rejection(believes, "q", ("h1", None)) is None


def test_what_is_believed_already_is_no_hypothesis() -> None:
    """A record whose content and id are believed already is refused."""
    model = model_of(radical("h & q", "h1"))
    assert _rejection(model, "q") is RejectionCode.ALREADY_BELIEVED
    assert _rejection(model_of(radical("q", "h1")), "q") is None, "its own id is not believed"


@pytest.mark.parametrize("formula", ["q & ~q", "false", "~h"])
def test_nonsense_is_inconsistent(formula: str) -> None:
    """A content that no world fits, or that denies its own record, is refused."""
    assert _rejection(model_of(), formula) is RejectionCode.INCONSISTENT_WITH_MODEL


def test_a_content_that_cannot_be_evaluated_is_refused_by_name() -> None:
    """Undefined common knowledge shows at once, also if the speaker's own view would define it."""
    model = model_of(announce("p", "o", ("b", "c")))
    with pytest.raises(CommonKnowledgeUndefined):
        _rejection(model, "C[a, b] q")


def test_the_checks_leave_no_trace() -> None:
    """A hypothesis that was tested is not in the model, and what it explains still is."""
    model = model_of(SEEN, radical("q", "h1"))
    before = list(model.updates())
    _rejection(model, "tok_bug & (tok_bug -> p_traffic)", TRAFFIC, ("h1", parse("q")))
    contradicted_records(model, "o7", parse("~p_traffic"))
    assert list(model.updates()) == before
    assert holds(model, "K_a p_traffic & B_a q & ~B_a h")


def test_the_incident_of_the_paper() -> None:
    """Undermining a believed hypothesis makes it disbelieved, not known to be false."""
    model = model_of(
        law("h1 -> (p_redis -> rate_bypass)", "h1"),
        radical("h1", "h1"),
        law("h2 -> (p_redis -> p_auth)", "h2"),
        radical("h2", "h2"),
        conservative("h1", "h1"),
    )
    assert holds(model, "B_a (h1 & h2)")
    model.append(radical("~h2", "o9"))
    assert holds(model, "B_a (h1 & ~h2) & ~K_a ~h2")
    model.contract("h2")
    model.append(announce("~h2", "o9"))
    assert holds(model, "K_a ~h2 & B_a h1")
    assert model.possible(parse("~(p_redis -> p_auth)"))
    assert model.possible(parse("p_redis -> p_auth")), "the world may still behave like that"


CONTRADICTIONS: list[tuple[list[Update], str, tuple[str, ...]]] = [
    ([announce("o1 & p", "o1")], "~p", ("o1",)),
    ([announce("o1 & p", "o1"), announce("o2 & q", "o2")], "~p", ("o1",)),
    ([announce("p", "o1"), announce("p -> q", "o2"), announce("r", "o3")], "~q", ("o1", "o2")),
    ([announce("p", "o1"), announce("p", "o2")], "~p", ("o2",)),
    ([announce("p", "o1")], "p", ()),
    ([announce("p", "o1")], "q & ~q", ()),
    ([announce("p", "o1"), radical("~q", "h1")], "q", ()),
    ([announce("h1", "h1"), law("h1 -> p", "h1")], "~p", ("h1",)),
    ([announce("o1", "o1"), announce("o2", "o2")], "~o1 & o2", ("o1",)),
]


@pytest.mark.parametrize(("log", "formula", "expected"), CONTRADICTIONS)
def test_what_an_observation_contradicts(
    log: list[Update], formula: str, expected: tuple[str, ...]
) -> None:
    """The records that together exclude it, the latest such set, and none that is not needed."""
    assert tuple(sorted(contradicted_records(model_of(*log), "o", parse(formula)))) == expected


contents = st.lists(plain_formulas, min_size=1, max_size=5)


@settings(max_examples=60)
@given(contents, plain_formulas)
def test_contradicted_records_are_minimal(said: list[Formula], formula: Formula) -> None:
    """All of them together exclude the observation, and no smaller part of them does."""
    log = [announce("true", f"o{number}") for number in range(len(said))]
    log = [
        Update(update.turn, update.kind, content, update.tags)
        for update, content in zip(log, said, strict=True)
    ]

    def is_possible(kept: tuple[str, ...]) -> bool:
        model = model_of(*(update for update in log if update.tags[0] in kept))
        return model.possible(And((Atom("o"), formula)))

    found = contradicted_records(model_of(*log), "o", formula)
    everything = tuple(update.tags[0] for update in log)
    if not found:
        assert is_possible(everything) or not is_possible(())
        return
    assert not is_possible(found)
    for size in range(len(found)):
        assert all(is_possible(part) for part in combinations(found, size))


def test_a_surprise_is_believed_by_no_hearer() -> None:
    """One hearer who foresaw it is enough to make it none."""
    model = model_of(radical("p", "h1", ("a",)))
    assert not is_surprise(model, ("a", "b"), parse("p"))
    assert is_surprise(model, ("b", "c"), parse("p"))
    assert is_surprise(model, ("a",), parse("~p"))


def test_a_hypothesis_may_explain_what_was_said_last() -> None:
    """Without the latest entries of the log a hypothesis is still the next thing to be said."""
    model = model_of(announce("q", "o1"), announce("p", "o2", turn=7))
    assert (
        hypothesis_rejection(model, "a", "h", parse("t & (t -> p)"), [("o2", parse("p"))], None)
        is None
    )
