"""Which entries replay skips, and that nobody can tell."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from processor.engine.plausibility.formula import And, Atom, Believes, Formula, Knows, Not, Or
from processor.engine.plausibility.log import UpdateLog
from processor.engine.plausibility.model import Model
from processor.engine.plausibility.relevance import Relevance
from processor.engine.plausibility.update import Update, UpdateKind
from tests.plausibility.drawn import agents, audiences, fill
from tests.plausibility.said import announce, conservative, holds, law, model_of, radical, sees

NAMES = [f"v{number}" for number in range(6)]
_atoms = st.sampled_from(NAMES).map(Atom)
_formulas: st.SearchStrategy[Formula] = st.one_of(
    _atoms,
    _atoms.map(Not),
    st.builds(lambda one, other: Or((one, Not(other))), _atoms, _atoms),
    st.builds(lambda one, other: And((one, other)), _atoms, _atoms),
    st.builds(Believes, agents, _atoms),
    st.builds(Knows, agents, _atoms),
)
_signs = st.fixed_dictionaries({name: st.sampled_from([True, True, False]) for name in NAMES})
_bare_kinds = st.sampled_from([k for k in UpdateKind if k not in (UpdateKind.OBSERVES,)])


@st.composite
def _logs(draw: st.DrawFn) -> list[Update]:
    """Mostly bare entries, most variables with one sign, a formula or an observer now and then."""
    signs = draw(_signs)
    log: list[Update] = []
    for turn in range(draw(st.integers(3, 14))):
        audience = draw(audiences)
        name = draw(st.sampled_from(NAMES))
        choice = draw(st.integers(0, 11))
        if choice == 0:
            log.append(Update(turn, UpdateKind.OBSERVES, None, (), audience, False, "a", (name,)))
        elif choice == 1:
            formula = draw(_formulas)
            log.append(Update(turn, UpdateKind.RADICAL, formula, ("h",), audience))
        else:
            sign = signs[name] ^ (choice == 2)
            formula = Atom(name) if sign else Not(Atom(name))
            kind = draw(_bare_kinds)
            log.append(
                Update(turn, kind, Atom(name) if kind == "variable" else formula, ("o",), audience)
            )
    return log


def _with_everything_relevant(log: list[Update]) -> Model:
    """The same model, in which no variable is inert, because a law that says nothing names them."""
    model = fill(Model(), log)
    everything = Or(tuple(Or((Atom(name), Not(Atom(name)))) for name in NAMES))
    model.append(Update(99, UpdateKind.LAW, everything))
    return model


@settings(max_examples=150)
@given(_logs(), st.lists(_formulas, min_size=1, max_size=4), agents)
def test_what_is_skipped_is_not_missed(log: list[Update], asked: list[Formula], agent: str) -> None:
    """Every answer is the same with all entries replayed in their place."""
    short, long = fill(Model(), log), _with_everything_relevant(log)
    for formula in (*asked, *(Believes(agent, each) for each in asked), *map(Atom, NAMES)):
        assert short.holds(formula) == long.holds(formula)
        assert short.possible(formula) == long.possible(formula)


@settings(max_examples=80)
@given(_logs(), _logs(), st.integers(0, 14))
def test_an_index_is_the_same_however_it_came_about(
    log: list[Update], more: list[Update], place: int
) -> None:
    """Following a log through contraction and rollback gives the index of the log that results."""
    followed, index = UpdateLog(), Relevance()
    for update in log:
        followed.append(update)
        index.sync(followed)
    mark = followed.mark()
    followed.contract("h")
    for update in more[:place]:
        followed.append(update._replace(turn=update.turn + len(log)))
        index.sync(followed)
    followed.contract("o")
    index.sync(followed)
    followed.rollback(mark)
    index.sync(followed)
    fresh = Relevance()
    fresh.sync(followed)
    assert index.declared == fresh.declared
    assert list(index.declared) == list(fresh.declared)
    assert index.private == fresh.private
    for update in followed.updates():
        assert index.is_relevant(update) is fresh.is_relevant(update)


def _relevant(*log: Update) -> list[Update]:
    followed, index = UpdateLog(), Relevance()
    for update in log:
        followed.append(update._replace(turn=1))
    index.sync(followed)
    return [update for update in log if index.is_relevant(update)]


def test_bare_entries_of_one_sign_are_skipped() -> None:
    """A variable matters once its entries pull apart, a formula names it, or somebody sees it."""
    log = (announce("o1"), radical("h1"), conservative("h1"))
    assert _relevant(*log) == []
    against = conservative("~h1")
    assert _relevant(*log, against) == [log[1], log[2], against]
    meaning = law("h1 -> p")
    assert _relevant(*log, meaning) == [log[1], log[2], meaning]
    seeing = sees("a", "o1")
    assert _relevant(*log, seeing) == [log[0], seeing]


def test_a_conservative_upgrade_alone_can_fade() -> None:
    """What only a conservative upgrade lifted falls with the worlds it was lifted in."""
    log = (radical("p", "h1"), conservative("q", "h2"), announce("~p", "o1"))
    assert holds(model_of(*log[:2]), "B_a q")
    assert not holds(model_of(*log), "B_a q")
    assert holds(model_of(radical("q", "h3"), *log), "B_a q")
    assert not holds(model_of(radical("q", "h3", ("b",)), *log), "B_a q")
