"""The plausibility model never stalls a turn, and where it stops depends on the log alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processor.engine.plausibility.bounds import (
    BoundExceeded,
    Bounds,
    CommonKnowledgeUndefined,
)
from processor.engine.plausibility.diagrams import DiagramSet, DiagramSpace
from processor.engine.plausibility.syntax import parse
from processor.engine.snapshot import dump, load
from schemas.derived import NoteCode, Standing
from tests.engine.given import (
    Given,
    Json,
    hypothesize,
    inline,
    observe,
    revise,
    support,
    undermine,
)

Turns = Iterator[list[Json]]


def many_observations_at_once() -> Turns:
    """One utterance with as many formulas as fit."""
    yield [observe(f"o{n}", formula=f"p{n} & (p{n} -> q{n})") for n in range(200)]


def hypotheses_given_up() -> Turns:
    """Hypotheses about one thing, each undermined for good."""
    for n in range(90):
        yield [hypothesize(f"h{n}", formula=f"t{n} & (t{n} -> p)")]
        yield [undermine(f"h{n}", inline(f"e{n}"), contrast=True)]


def clues() -> Turns:
    """Observations that hang together, and hypotheses that explain them."""
    for n in range(60):
        yield [observe(f"o{n}", formula=f"p{n} | p{n + 1}")]
        yield [hypothesize(f"h{n}", formula=f"t{n} & (t{n} -> p{n})", explains=[f"o{n}"])]


def one_against_all() -> Turns:
    """An observation that only all the earlier ones together rule out."""
    for n in range(100):
        yield [observe(f"o{n}", formula=f"p{n}")]
    yield [observe("x", formula=" | ".join(f"~p{n}" for n in range(100)))]


def everything_withdrawn() -> Turns:
    """As many negations as fit into a turn, each tested in the model without its target."""
    yield [observe(f"o{n}", formula=f"p{n} | q") for n in range(100)]
    yield [revise(f"o{n}", inline(f"r{n}"), negates=True) for n in range(100)]


def large_diagrams() -> Turns:
    """Equivalences between variables that stand far apart."""
    for n in range(60):
        yield [observe(f"o{n}", formula=f"(a{n} <-> b{60 - n}) | (a{n // 2} <-> ~b{n})")]


def diagrams_that_explode() -> Turns:
    """Every one of these formulas is given up because its diagram is too large."""
    names = [f"v{n}" for n in range(60)]
    pairs = [f"({names[n]} & {names[59 - (7 * n) % 60]})" for n in range(60)]
    yield [observe(f"o{n}", formula=" | ".join(pairs[n % 3 :])) for n in range(60)]


HOSTILE = [
    diagrams_that_explode,
    many_observations_at_once,
    hypotheses_given_up,
    clues,
    one_against_all,
    everything_withdrawn,
    large_diagrams,
]


@pytest.mark.parametrize("stream", HOSTILE)
@pytest.mark.parametrize("steps", [2_000, 20_000])
def test_a_turn_does_not_take_more_than_the_bound(
    stream: Callable[[], Turns], steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operations on world sets are counted where they happen, whatever the meters say."""
    count, most = 0, 0
    intersect = DiagramSet.__and__

    def counted(left: DiagramSet, right: DiagramSet) -> DiagramSet:
        nonlocal count
        count += 1
        return intersect(left, right)

    monkeypatch.setattr(DiagramSet, "__and__", counted)
    conversation = Given(Bounds(steps=steps))
    for operations in stream():
        count = 0
        turn = conversation.say(*operations)
        most = max(most, count)
        assert {each.code for each in turn.rejections} <= {"bound_exceeded", "unknown_reference"}
    assert 20 < most <= 4 * steps


def test_operations_that_are_given_up_are_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn may run into the bound on nodes a few times, and not with each of its operations."""
    failures = 0
    bounded = DiagramSpace.bounded

    def counted(space: DiagramSpace, root: Any, signs: Any) -> DiagramSet:
        nonlocal failures
        try:
            return bounded(space, root, signs)
        except BoundExceeded:
            failures += 1
            raise

    monkeypatch.setattr(DiagramSpace, "bounded", counted)
    conversation = Given(Bounds(nodes=500))
    (operations,) = diagrams_that_explode()
    turn = conversation.say(*operations)
    assert 0 < failures <= 10
    assert turn.rejections == ()
    assert [note.code for note in turn.notes] == ["announcement_withheld"] * 60


def test_what_is_observed_or_withdrawn_is_kept_beyond_the_bound() -> None:
    """The map does not depend on what the model can take; the notes say what it did not."""
    given_ = Given(Bounds(variables=6))
    given_.say(observe("o", formula="p"))
    many = " & ".join(f"x{number}" for number in range(10))
    turn = given_.say(
        observe("big", formula=many),
        observe("small", formula="q"),
        hypothesize("h", formula=many),
    )
    assert [(each.index, each.code) for each in turn.rejections] == [(2, "bound_exceeded")]
    assert [(note.code, note.records) for note in turn.notes] == [
        (NoteCode.ANNOUNCEMENT_WITHHELD, ("big",))
    ]
    assert given_.conversation.state.records["big"].standing is Standing.ACTIVE
    assert given_.conversation.state.model.holds(parse("K_ann (p & q)"))
    assert not given_.conversation.state.model.holds(parse("K_ann x0"))
    turn = given_.say(revise("o", inline("e", formula=many), negates=True))
    assert turn.rejections == ()
    assert [(note.code, note.records) for note in turn.notes] == [
        (NoteCode.NEGATION_SKIPPED, ("e", "o"))
    ]
    assert given_.conversation.state.records["o"].standing is Standing.ABANDONED
    assert not given_.conversation.state.model.holds(parse("p"))


def test_a_conflict_too_large_to_trace_disputes_what_brought_it_alone() -> None:
    """Marking all that was said as disputed would let one observation silence everybody."""
    given_ = Given(Bounds(steps=3_000))
    for operations in one_against_all():
        turn = given_.say(*operations)
    assert [note.code for note in turn.notes] == ["bound_exceeded", "announcement_withheld"]
    assert set(given_.conversation.state.disputed) == {"x"}
    full = Given(Bounds(steps=10**9, turn_steps=10**9))
    for operations in one_against_all():
        turn = full.say(*operations)
    assert set(full.conversation.state.disputed) == {"x", *(f"o{n}" for n in range(100))}


_names = st.sampled_from([f"{letter}{number}" for letter in "pqr" for number in range(8)])
_formulas = st.one_of(
    _names,
    st.builds("{} | {}".format, _names, _names),
    st.builds("{0} & ({0} -> {1})".format, _names, _names),
    st.builds("~{} | B_ann {}".format, _names, _names),
    st.builds("K_bob {} | {}".format, _names, _names),
    st.builds("{} <-> ~{}".format, _names, _names),
)
_choices = st.tuples(st.integers(0, 5), _formulas, st.integers(0, 30))
_turns = st.lists(
    st.tuples(st.lists(_choices, min_size=1, max_size=4), st.sampled_from([None, ["ann", "bob"]])),
    min_size=2,
    max_size=14,
)


def _operation(choice: int, formula: str, new: str, old: str) -> Json:
    match choice:
        case 0 | 1:
            return observe(new, formula=formula)
        case 2:
            return hypothesize(new, formula=formula)
        case 3:
            return hypothesize(new, formula=formula, explains=[old])
        case 4:
            return support(old, inline(new, formula=formula))
        case _:
            return revise(old, inline(new), negates=True)


@settings(max_examples=150)
@given(_turns, st.sampled_from([25, 60, 150, 400, 10**6]), st.lists(_formulas, max_size=3))
def test_bounds_do_not_depend_on_what_is_cached(
    turns: list[tuple[list[tuple[int, str, int]], list[str] | None]],
    steps: int,
    asked: list[str],
) -> None:
    """A process that asks all along folds as one that reads a snapshot before every turn."""
    bounds = Bounds(steps=steps, variables=20)
    warm, cold = Given(bounds), Given(bounds)
    count = 0
    for choices, audience in turns:
        operations = []
        for choice, formula, old in choices:
            operations.append(_operation(choice, formula, f"n{count}", f"n{old % (count + 1)}"))
            count += 1
        for text in asked:
            _ask(warm, text)
        cold.conversation = load(dump(cold.conversation), bounds)
        said = warm.utter(operations=operations, audience=audience)
        assert said == cold.utter(operations=operations, audience=audience)
        assert warm.conversation.digest == cold.conversation.digest


def _ask(warm: Given, text: str) -> None:
    with suppress(BoundExceeded, CommonKnowledgeUndefined):
        warm.conversation.state.model.believes("ann", parse(text))
