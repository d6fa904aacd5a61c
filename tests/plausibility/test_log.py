"""The log: order, tags, turns, contraction, and taking changes back."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from processor.engine.plausibility.formula import Atom
from processor.engine.plausibility.log import Mark, UpdateLog
from processor.engine.plausibility.update import Canonical, Update, UpdateKind
from tests.plausibility.drawn import RECORDS, logs
from tests.plausibility.said import announce, conservative, holds, model_of, radical, sees


class LogMachine(RuleBasedStateMachine):
    """The log next to a plain list of its entries, with marks taken at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.log = UpdateLog()
        self.plain: list[Update] = []
        self.marks: list[tuple[Mark, list[Update]]] = []
        self.turn = 0

    @rule(
        later=st.integers(0, 2),
        tags=st.lists(st.sampled_from(RECORDS), max_size=2).map(tuple),
        explicit=st.booleans(),
    )
    def append(self, later: int, tags: tuple[str, ...], explicit: bool) -> None:
        """Append an update of this turn or a later one."""
        self.turn += later
        update = announce("p & q" if explicit else "p")
        update = Update(self.turn, update.kind, update.formula, tags)
        self.log.append(update)
        self.plain.append(update)

    @rule(record=st.sampled_from(RECORDS))
    def contract(self, record: str) -> None:
        """Contract by a record."""
        dropped = self.log.contract(record)
        assert list(dropped) == [update for update in self.plain if record in update.tags]
        self.plain = [update for update in self.plain if record not in update.tags]

    @rule()
    def mark(self) -> None:
        """Take a mark."""
        self.marks.append((self.log.mark(), copy.copy(self.plain)))

    @rule(data=st.data())
    def rollback(self, data: st.DataObject) -> None:
        """Go back to some mark; later marks are void."""
        if self.marks:
            place = data.draw(st.integers(0, len(self.marks) - 1))
            mark, self.plain = self.marks[place]
            self.log.rollback(mark)
            del self.marks[place:]

    @invariant()
    def is_the_plain_list(self) -> None:
        """Order, turns and the count of explicit formulas are those of the list."""
        assert list(self.log.updates()) == self.plain
        for turn in range(self.turn + 2):
            of_turn = tuple(update for update in self.plain if update.turn == turn)
            assert self.log.of_turn(turn) == of_turn


TestLogIsAList = LogMachine.TestCase
TestLogIsAList.settings = settings(max_examples=60, stateful_step_count=25)


@settings(max_examples=80)
@given(logs())
def test_updates_survive_storage(log: list[Update]) -> None:
    """The canonical list of an update gives an equal update, and holds only what JSON can."""

    def is_plain(value: Canonical) -> bool:
        if isinstance(value, list):
            return all(map(is_plain, value))
        return value is None or type(value) in (bool, int, str)

    for update in [*log, sees("a", "q", "p"), Update(3, UpdateKind.VARIABLE, Atom("and"))]:
        stored = update.to_canonical()
        assert is_plain(stored)
        assert Update.from_canonical(stored) == update


@pytest.mark.parametrize(
    "stored",
    [
        [],
        [1, "announcement", "p", [], None, False, None],
        ["1", "announcement", "p", [], None, False, None, []],
        [1, "no such kind", "p", [], None, False, None, []],
        [1, "law", "p &", [], None, False, None, []],
        [1, "law", "p", [1], None, False, None, []],
        [1, "law", "p", [], "a", False, None, []],
    ],
)
def test_other_lists_are_no_updates(stored: list[Canonical]) -> None:
    """A list that `to_canonical` cannot have made is a ValueError."""
    with pytest.raises(ValueError, match=r"."):
        Update.from_canonical(stored)


def test_contraction_drops_by_every_tag() -> None:
    """A support is gone with its target, and with its evidence."""
    support = Update(1, UpdateKind.CONSERVATIVE, Atom("h"), ("h", "e"))
    for record in ("h", "e"):
        model = model_of(support)
        assert holds(model, "B_a h")
        assert model.contract(record) == (support,)
        assert model.contract(record) == ()
        assert not holds(model, "B_a h")


def test_contraction_evaluates_again() -> None:
    """An announced ignorance is judged anew: without what made it false it says something else."""
    model = model_of(announce("p", "o1"), announce("K_a p", "o2"))
    assert holds(model, "K_a p")
    model.contract("o1")
    assert not holds(model, "p"), "nobody knew p, so the second announcement is passed over"


def test_contraction_restores_no_stored_set() -> None:
    """A conservative upgrade chooses its worlds in the model as it is now, not as it was then."""
    log = (radical("q", "h1"), conservative("p", "h2"))
    model = model_of(*log, radical("~q", "h3"))
    stored = model_of(log[0], conservative("p & q", "h2"), radical("~q", "h3"))
    assert holds(model, "B_a ~q")
    for each in (model, stored):
        each.contract("h1")
    assert holds(model, "B_a (p & ~q)"), "without q the best p-worlds are all p-worlds"
    assert not holds(stored, "B_a p"), "the stored set would still have been the p-and-q-worlds"


def test_a_contracted_model_is_one_that_never_had_it() -> None:
    """Asking before a contraction leaves no trace in the answers after it."""
    log = [radical("p", "h1"), conservative("q", "h2"), announce("p | q", "o1")]
    model = model_of(*log, radical("~p", "h3"))
    assert holds(model, "B_a ~p")
    model.contract("h3")
    fresh = model_of(*log)
    for formula in ("B_a p", "B_a q", "B_a (p & q)", "K_a (p | q)", "B_a ~q"):
        assert holds(model, formula) == holds(fresh, formula)


def test_supposing_leaves_the_model_alone() -> None:
    """Whatever is supposed is gone afterwards, also when it ends in an error."""
    model = model_of(announce("p", "o1"), radical("q", "h1"))

    def suppose() -> None:
        with model.supposing():
            model.contract("o1")
            model.append(radical("~q", "h2"))
            assert holds(model, "B_a ~q & ~K_a p")
            raise KeyError

    with pytest.raises(KeyError):
        suppose()
    assert holds(model, "K_a p & B_a q")
    assert len(list(model.updates())) == 2
