"""The propositions of the paper (appendix A) about what a memory must keep, as tests."""

from __future__ import annotations

from itertools import product

import pytest

from processor.evidence.answers import Answer, Found, Query
from processor.evidence.ledger import Event
from processor.evidence.memories import AWARE_CLASSES, TEXT_CLASSES, Memory
from processor.evidence.readers import COVERED, ask
from processor.evidence.retention import select_retention
from schemas.evidence import MemoryClass, QueryClass, Relation
from tests.evidence.streams import arrival, ledger, memory, random_events, row

KEY = arrival(0, "x").fact.key
BLIND = [each for each in MemoryClass if each not in (*TEXT_CLASSES, *AWARE_CLASSES)]
RETAINING = (MemoryClass.COARSE_RETAIN, MemoryClass.LEDGER)


def asked(of: Memory, query_class: QueryClass = QueryClass.SNAPSHOT) -> Answer:
    """What a memory answers about the only key."""
    return ask(of, Query(KEY, query_class))


def pairs() -> list[tuple[list[Event], str | None, list[Event], str | None]]:
    """Streams alike in values, times and sources: the third atom supersedes the second, or not.

    With the gold answer of each: the value that is in force, or None for abstain.
    """
    made: list[tuple[list[Event], str | None, list[Event], str | None]] = []
    values = [(f"{n} s", f"{n + 1} s") for n in range(20)]
    sources = [("ann", "bob", "eve"), ("ann", "bob", "ann"), ("ann", "bob", "bob")]
    for (first, second), told_by, dated in product(values, sources, (False, True)):
        years = ("2010", "2011", "2012") if dated else (None, None, None)

        def stream(
            relation: Relation | None,
            said: tuple[str, str, str] = (first, second, first),
            told_by: tuple[str, str, str] = told_by,
            years: tuple[str | None, ...] = years,
        ) -> list[Event]:
            of = None if relation is None else ("r1",)
            third = {"relation": relation or Relation.CONTRADICTS, "of": of or ("r1",)}
            return [
                arrival(0, said[0], told_by[0], valid_from=years[0]),
                arrival(1, said[1], told_by[1], valid_from=years[1]),
                arrival(2, said[2], told_by[2], valid_from=years[2], **third),
            ]

        made.append((stream(Relation.SUPERSEDES), first, stream(None), None))
    return made


def is_right(answer: Answer, gold: str | None) -> bool:
    """Whether the answer is the gold value, or abstains where there is none."""
    return answer.found is Found.ABSTAIN if gold is None else answer.value == gold


@pytest.mark.parametrize("memory_class", BLIND)
def test_a_blind_class_is_right_on_at_most_half_of_the_ambiguous_pairs(
    memory_class: MemoryClass,
) -> None:
    """Proposition 1: it cannot tell the two streams of a pair apart, and their answers differ."""
    right = total = 0
    for reverted, value, disputed, abstain in pairs():
        first, second = (asked(memory(memory_class, each)) for each in (reverted, disputed))
        assert first == second
        right += is_right(first, value) + is_right(second, abstain)
        total += 2
    assert total == 240
    assert right <= total / 2


@pytest.mark.parametrize("memory_class", AWARE_CLASSES)
def test_an_aware_class_is_right_on_all_of_them(memory_class: MemoryClass) -> None:
    """Live or dead is enough to tell the two streams apart."""
    for reverted, value, disputed, abstain in pairs():
        assert is_right(asked(memory(memory_class, reverted)), value)
        assert is_right(asked(memory(memory_class, disputed)), abstain)


def check_snapshots(seeds: range) -> None:
    """Compare what the three aware classes answer about the present."""
    for seed in seeds:
        events = random_events(seed, 3 + seed % 8)
        coarse, retain, full = (memory(each, events) for each in AWARE_CLASSES)
        for query_class in (QueryClass.SNAPSHOT, QueryClass.STATUS):
            assert asked(coarse, query_class) == asked(full, query_class), seed
            assert asked(retain, query_class) == asked(full, query_class), seed
        if seed % 4 == 0:
            assert asked(retain, QueryClass.PROVENANCE) == asked(full, QueryClass.PROVENANCE), seed


def test_fine_types_never_change_a_snapshot() -> None:
    """Proposition 2b: live or dead is all that a snapshot and a status need."""
    check_snapshots(range(1_000))


@pytest.mark.thorough
def test_fine_types_never_change_a_snapshot_on_ten_thousand_streams() -> None:
    """The same on 10,000 streams."""
    check_snapshots(range(10_000))


def test_a_snapshot_does_not_tell_what_came_before() -> None:
    """Proposition 2c (a): a then b and c then b leave one live state, and two provenances."""
    one = [arrival(0, "a", valid_from="2010"), arrival(1, "b")]
    two = [arrival(0, "c", valid_from="2010"), arrival(1, "b")]
    discard = [memory(MemoryClass.COARSE_DISCARD, each) for each in (one, two)]
    assert discard[0].kept(KEY) == discard[1].kept(KEY)
    assert asked(discard[0], QueryClass.PROVENANCE).found is Found.NOT_KEPT
    for memory_class in RETAINING:
        told = [asked(memory(memory_class, e), QueryClass.PROVENANCE).value for e in (one, two)]
        assert told == ["a", "c"]


def test_a_history_does_not_tell_how_a_value_changed() -> None:
    """Proposition 2c (b): the same two values, once replaced and once refined."""
    replaced, refined = (
        [arrival(0, "a"), arrival(1, "b", relation=each)] for each in ("supersedes", "refines")
    )
    retain = [memory(MemoryClass.COARSE_RETAIN, each) for each in (replaced, refined)]
    assert retain[0].kept(KEY) == retain[1].kept(KEY)
    assert asked(retain[0], QueryClass.CHANGE_TYPE).found is Found.NOT_KEPT
    full = [memory(MemoryClass.LEDGER, each) for each in (replaced, refined)]
    assert [asked(each, QueryClass.PROVENANCE).value for each in full] == ["a", "a"]
    assert [asked(each, QueryClass.CHANGE_TYPE).value for each in full] == ["replaced", "refined"]


def test_each_class_of_the_chain_costs_more_than_the_one_below() -> None:
    """Keeping more never takes fewer bytes, and takes more as soon as something was closed."""
    for seed in range(200):
        events = random_events(seed, 8)
        sizes = [memory(each, events).bytes_per_key() for each in AWARE_CLASSES]
        assert sizes == sorted(sizes)
        if row(events).closed:
            assert sizes[0] < sizes[1] < sizes[2]


def test_the_selected_class_is_the_least_sufficient_one_for_every_mix() -> None:
    """For all 63 mixes of query classes it covers what is asked, and no smaller class does."""
    mixes = 0
    for present in product((0.0, 0.25), repeat=len(QueryClass)):
        mix = dict(zip(QueryClass, present, strict=True))
        wanted = [query_class for query_class, weight in mix.items() if weight > 0]
        if not wanted:
            with pytest.raises(ValueError, match="above zero"):
                select_retention(mix)
            continue
        mixes += 1
        chosen = select_retention(mix)
        assert all(query_class in COVERED[chosen] for query_class in wanted)
        for smaller in AWARE_CLASSES[: AWARE_CLASSES.index(chosen)]:
            assert not all(query_class in COVERED[smaller] for query_class in wanted)
    assert mixes == 63
    with pytest.raises(ValueError, match="below zero"):
        select_retention({QueryClass.SNAPSHOT: -1})


def test_a_class_refuses_exactly_what_it_does_not_cover() -> None:
    """`not_kept` is the answer to a query class that a class has no state for, and only then."""
    events = random_events(7, 8)
    for memory_class in MemoryClass:
        folded = memory(memory_class, events)
        for query_class in QueryClass:
            refused = ask(folded, Query(KEY, query_class, turn=3)).found is Found.NOT_KEPT
            assert refused == (query_class not in COVERED[memory_class])


def test_as_of_a_turn_is_the_snapshot_of_that_turn() -> None:
    """What was in force after turn n is what a ledger folded up to turn n says."""
    for seed in range(400):
        events = random_events(seed, 8)
        for memory_class in RETAINING:
            whole = memory(memory_class, events)
            for turn in range(1, len(events) + 1):
                then = ask(whole, Query(KEY, QueryClass.AS_OF, turn=turn))
                snapshot = asked(memory(memory_class, events[:turn]))
                assert (then.found, then.value) == (snapshot.found, snapshot.value), (seed, turn)


def test_as_of_a_time_follows_the_valid_times() -> None:
    """What was in force in a year is told by the dates, whatever the order of the log."""
    events = [
        arrival(0, "Oslo", valid_from="2015"),
        arrival(1, "Rome", valid_from="2010", valid_to="2014"),
    ]
    for memory_class in RETAINING:
        folded = memory(memory_class, events)
        told = [
            ask(folded, Query(KEY, QueryClass.AS_OF, at=at)).value
            for at in ("2009", "2010", "2013-12-31", "2014", "2015", "2026")
        ]
        assert told == [None, "Rome", "Rome", None, "Oslo", "Oslo"]


def test_an_open_conflict_names_its_sides() -> None:
    """The ledger says which records are in conflict, and by which relation."""
    folded = memory(MemoryClass.LEDGER, [arrival(0, "30 s", "ann"), arrival(1, "60 s", "bob")])
    answer = asked(folded, QueryClass.CONFLICT_RELATION)
    assert answer.relation is Relation.CONTRADICTS
    assert [(side.value, side.records) for side in answer.sides] == [
        ("30 s", ("r0",)),
        ("60 s", ("r1",)),
    ]
    assert asked(folded).found is Found.ABSTAIN


def test_keys_are_compared_without_case_and_white_space_and_keep_their_spelling() -> None:
    """Pool  Timeout and pool timeout are one key; a facet makes another one."""
    events = [
        arrival(0, "30 s", entity="The  Pool"),
        arrival(1, "60 s", entity="the pool"),
        arrival(2, "90 s", entity="THE POOL", facet="staging"),
    ]
    rows = ledger(events).rows
    assert [(key.facet, len(of.live), len(of.closed)) for key, of in rows.items()] == [
        ("", 1, 1),
        ("staging", 1, 0),
    ]
    assert next(iter(rows.values())).closed[0].fact.entity == "The  Pool"
