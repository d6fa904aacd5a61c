"""Random formulas, logs and awareness over few variables and agents."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from processor.engine.plausibility.awareness import Awareness
from processor.engine.plausibility.formula import (
    And,
    Atom,
    Aware,
    Believes,
    Common,
    Constant,
    Explicit,
    Formula,
    Iff,
    Implies,
    Knows,
    Not,
    Or,
)
from processor.engine.plausibility.model import Model
from processor.engine.plausibility.update import Audience, Update, UpdateKind
from tests.plausibility.textbook import Textbook

AGENTS = ("a", "b", "c")
VARIABLES = ("p", "q", "r", "s")
RECORDS = ("o1", "o2", "h1", "h2")

agents = st.sampled_from(AGENTS)
groups = st.lists(agents, min_size=1, unique=True).map(lambda each: tuple(sorted(each)))
audiences: st.SearchStrategy[Audience] = st.one_of(st.none(), st.none(), groups)
atoms = st.sampled_from(VARIABLES).map(Atom)
literals = st.one_of(atoms, atoms, atoms.map(Not))


def _larger(smaller: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    several = st.lists(smaller, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Not, smaller),
        st.builds(And, several),
        st.builds(Or, several),
        st.builds(Implies, smaller, smaller),
        st.builds(Iff, smaller, smaller),
    )


def _modal(smaller: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    return st.one_of(
        _larger(smaller),
        st.builds(Knows, agents, smaller),
        st.builds(Believes, agents, smaller),
        st.builds(Believes, agents, smaller),
        st.builds(Common, groups, smaller),
        st.builds(Aware, agents, smaller),
        st.builds(Explicit, agents, smaller),
    )


_leaves = st.one_of(atoms, atoms, atoms, st.booleans().map(Constant))
plain_formulas: st.SearchStrategy[Formula] = st.recursive(_leaves, _larger, max_leaves=4)
formulas: st.SearchStrategy[Formula] = st.recursive(_leaves, _modal, max_leaves=5)

_changes = st.sampled_from(
    (
        UpdateKind.ANNOUNCEMENT,
        UpdateKind.LAW,
        UpdateKind.RADICAL,
        UpdateKind.CONSERVATIVE,
        UpdateKind.RADICAL,
        UpdateKind.CONSERVATIVE,
    )
)
_tags = st.lists(st.sampled_from(RECORDS), min_size=1, max_size=2, unique=True).map(tuple)


@st.composite
def turns(draw: st.DrawFn, turn: int, content: st.SearchStrategy[Formula]) -> list[Update]:
    """The updates of one utterance: observations announced at once, then what follows them."""
    audience = draw(audiences)
    updates: list[Update] = []
    if draw(st.integers(0, 5)) == 0:
        seen = tuple(sorted(draw(st.sets(st.sampled_from(VARIABLES), max_size=2))))
        updates.append(
            Update(turn, UpdateKind.OBSERVES, audience=audience, agent=draw(agents), variables=seen)
        )
    for formula in draw(st.lists(content, max_size=2)):
        updates.append(
            Update(turn, UpdateKind.ANNOUNCEMENT, formula, draw(_tags), audience, simultaneous=True)
        )
    for formula in draw(st.lists(content, max_size=2)):
        updates.append(Update(turn, draw(_changes), formula, draw(_tags), audience))
    return updates


@st.composite
def logs(
    draw: st.DrawFn,
    content: st.SearchStrategy[Formula] | None = None,
    turns_max: int = 4,
    after: int = 0,
) -> list[Update]:
    """Up to `turns_max` utterances `after` a turn; bare entries too unless `content` says no."""
    content = st.one_of(literals, formulas) if content is None else content
    updates: list[Update] = []
    for number in range(draw(st.integers(1, turns_max))):
        updates.extend(draw(turns(after + 1 + number, content)))
    return updates


Raised = tuple[str, tuple[str, ...] | None, Audience, int]
raised: st.SearchStrategy[list[Raised]] = st.lists(
    st.tuples(
        st.sampled_from(VARIABLES), st.one_of(st.none(), groups), audiences, st.integers(0, 5)
    ),
    max_size=4,
)


def awareness_of(expansions: Sequence[Raised]) -> Awareness:
    """The product's awareness after some expansions."""
    awareness = Awareness()
    for expansion in expansions:
        awareness.expand(*expansion)
    return awareness


def fill(model: Model, log: Sequence[Update]) -> Model:
    """The model with a log appended."""
    for update in log:
        model.append(update)
    return model


def textbook_of(log: Sequence[Update], expansions: Sequence[Raised] = ()) -> Textbook:
    """The textbook's reading of a log."""
    return Textbook(AGENTS, VARIABLES, log, expansions)
