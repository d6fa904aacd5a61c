"""The ledger's update: defined by the active set, the same however the events are dealt out."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from processor.evidence.ledger import Ledger
from processor.evidence.row import Row
from processor.evidence.timeline import periods
from tests.evidence.streams import arrival, ledger, random_events, row
from tests.oracles.naive_ledger import naive_row
from tests.oracles.naive_timeline import naive_periods

SEEDS = 1_500


def in_force(of: Row) -> str | None:
    """The value in force, None if there is none or it is open."""
    held = None if of.is_unresolved else of.in_force()
    return None if held is None else held.facts[0].value


def check_against_oracle(seeds: range) -> None:
    """Fold random events both ways and compare everything that is defined."""
    for seed in seeds:
        events = random_events(seed, 4 + seed % 9)
        fast, slow = row(events), naive_row(events)
        live = sorted(fact.place for holding in fast.live for fact in holding.facts)
        assert live == [fact.place for fact in slow.active()], seed
        closed = {each.fact.place: (each.relation, each.is_late) for each in fast.closed}
        assert closed == slow.ended, seed
        assert fast.is_unresolved == slow.unresolved(), seed
        assert in_force(fast) == slow.value(), seed


def test_the_update_equals_the_definition_by_the_active_set() -> None:
    """Random atoms with dates, denials, relations and withdrawals give what the slow ledger has."""
    check_against_oracle(range(SEEDS))


@pytest.mark.thorough
def test_the_update_equals_the_definition_on_many_streams() -> None:
    """The same on 100,000 streams."""
    check_against_oracle(range(SEEDS, 100_000))


def test_the_history_equals_the_definition_by_every_pair_of_facts() -> None:
    """Periods, their ends and whether they were contested are those of the slow history."""
    contested = 0
    for seed in range(3_000):
        of = row(random_events(seed, 4 + seed % 14))
        assert periods(of) == naive_periods(of), seed
        contested += any(period.is_contested for period in periods(of))
    assert contested > 1_000


def test_a_holding_knows_whom_it_is_in_conflict_with() -> None:
    """Of live holdings, what the newer one has noted is what the conflicts of the row say."""
    pairs = 0
    for seed in range(SEEDS):
        of = row(random_events(seed, 4 + seed % 9))
        noted = {(h.place, o.place) for h in of.live for o in of.live if o.place in h.against}
        assert noted == {(new.place, old.place) for new, old in of.open_conflicts()}, seed
        pairs += len(noted)
    assert pairs > SEEDS // 10


def test_any_split_into_batches_gives_the_same_rows() -> None:
    """However the events are dealt out to branches that are adopted, the rows are equal."""
    for seed in range(100):
        events = random_events(seed, 8)
        whole = ledger(events)
        for ends in product((False, True), repeat=len(events) - 1):
            parts = Ledger()
            branch = parts.branch()
            for event, is_last in zip(events, (*ends, True), strict=True):
                branch.take(event)
                if is_last:
                    parts.adopt(branch)
                    branch = parts.branch()
            assert dict(parts.rows) == dict(whole.rows)
            assert (parts.count, parts.keys_of_record) == (whole.count, whole.keys_of_record)


def test_a_branch_that_is_thrown_away_leaves_no_trace() -> None:
    """What came to a branch is unknown to the ledger until it is adopted."""
    events = random_events(3, 9)
    kept = ledger(events[:5])
    before = dict(kept.rows)
    kept.branch().take_all(events[5:])
    assert dict(kept.rows) == before


def test_a_supersession_that_removes_the_disagreement_clears_it() -> None:
    """The status is told by who is live now, not by what once happened."""
    events = [arrival(0, "30 s", "ann"), arrival(1, "60 s", "bob")]
    assert row(events).is_unresolved
    events.append(arrival(2, "90 s", "eve", relation="supersedes"))
    assert not row(events).is_unresolved
    assert in_force(row(events)) == "90 s"


def test_a_refinement_closes_the_broader_value_and_keeps_its_window() -> None:
    """The finer value is in force, and the broader one stands in the history as refined."""
    of = row([arrival(0, "2015", valid_from="2015"), arrival(1, "2015-06", "bob")])
    assert in_force(of) == "2015-06"
    broader, finer = periods(of)
    assert (broader.value, broader.change()) == ("2015", "refines")
    assert finer.is_live


def test_a_late_atom_splits_the_window_it_falls_into() -> None:
    """Rome 2010, Oslo 2015, then word of Bern in 2012: Bern ends Rome, Oslo stays."""
    of = row(
        [
            arrival(0, "Rome", valid_from="2010"),
            arrival(1, "Oslo", valid_from="2015"),
            arrival(2, "Bern", valid_from="2012"),
        ]
    )
    assert in_force(of) == "Oslo"
    assert [(p.value, p.valid_from, p.valid_to) for p in periods(of)] == [
        ("Rome", "2010", "2012"),
        ("Bern", "2012", "2015"),
        ("Oslo", "2015", None),
    ]
    assert [(each.fact.value, each.is_late) for each in of.closed] == [
        ("Rome", False),
        ("Bern", True),
    ]


def test_an_older_atom_that_says_it_corrects_takes_over() -> None:
    """What is said with the atom wins over its date."""
    of = row(
        [
            arrival(0, "Oslo", valid_from="2015"),
            arrival(1, "Rome", valid_from="2010", relation="supersedes"),
        ]
    )
    assert in_force(of) == "Rome"


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_dates_in_any_order_give_the_same_history(order: tuple[int, ...]) -> None:
    """A value that returns is two periods, whichever of them was told first."""
    dated = [("A", "2010"), ("B", "2012"), ("A", "2014"), ("C", "2016")]
    of = row([arrival(i, dated[p][0], valid_from=dated[p][1]) for i, p in enumerate(order)])
    history = [(p.value, p.valid_from, p.valid_to) for p in periods(of)]
    assert history == [
        ("A", "2010", "2012"),
        ("B", "2012", "2014"),
        ("A", "2014", "2016"),
        ("C", "2016", None),
    ]
    assert in_force(of) == "C"


def test_a_paraphrase_said_to_be_the_same_state_is_support() -> None:
    """Other words for the value in force change nothing, also when they are repeated."""
    events = [
        arrival(0, "30 s"),
        arrival(1, "half a minute", relation="same_state"),
        arrival(2, "half a minute"),
    ]
    of = row(events)
    assert in_force(of) == "30 s"
    assert len(of.live[0].facts) == 3
