"""The propositions of the paper (appendix A) about what a memory must keep, as tests."""

from __future__ import annotations

from itertools import product

import pytest

from processor.evidence.answers import Answer, Found, Query
from processor.evidence.fact import Fact
from processor.evidence.ledger import Event, Withdrawal
from processor.evidence.memories import AWARE_CLASSES, TEXT_CLASSES, Memory
from processor.evidence.readers import COVERED, ask
from processor.evidence.retention import select_retention
from processor.evidence.scorer import RULES
from schemas.evidence import MemoryClass, QueryClass, Relation
from schemas.wire import canonical_bytes
from tests.evidence.streams import arrival, ledger, memory, random_events, row

KEY = arrival(0, "x").fact.key
RELATIONS_SAID = (None, *(each for each in Relation if each is not Relation.UNRELATED))
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


class Coarse:
    """The rules without the distinction between a refinement and a replacement."""

    def relation(self, new: Fact, old: Fact) -> Relation:
        """That of the rules, untyped."""
        return coarse(RULES.relation(new, old))


def coarse(relation: Relation) -> Relation:
    """What is left of a relation that says only that the older one is out of force."""
    return Relation.SUPERSEDES if relation is Relation.REFINES else relation


def without_types(event: Event) -> Event:
    """The event with what was said of it untyped."""
    if isinstance(event, Withdrawal) or event.relation is None:
        return event
    return event._replace(relation=coarse(event.relation))


def test_fine_types_never_change_a_snapshot() -> None:
    """Proposition 2b on 10,000 streams: live or dead is all that snapshot and status need."""
    # neither forgetting the types nor never having had them changes an answer
    typed = 0
    for seed in range(10_000):
        events = random_events(seed, 3 + seed % 8)
        discard, retain, full = (memory(each, events) for each in AWARE_CLASSES)
        untyped = Memory(MemoryClass.LEDGER)
        untyped.take_all(map(without_types, events), Coarse())
        for query_class in (QueryClass.SNAPSHOT, QueryClass.STATUS):
            for other in (discard, retain, untyped):
                assert asked(other, query_class) == asked(full, query_class), seed
        assert asked(retain, QueryClass.PROVENANCE) == asked(full, QueryClass.PROVENANCE), seed
        typed += any(closed.relation is Relation.REFINES for closed in full.rows[KEY].closed)
    assert typed > 1_000


@pytest.mark.parametrize("memory_class", AWARE_CLASSES)
def test_a_class_is_what_its_own_fold_keeps_of_the_ledger(memory_class: MemoryClass) -> None:
    """Read from the rows of the ledger it is the memory that folded the events itself."""
    for seed in range(1_000):
        events = random_events(seed, 3 + seed % 8)
        own = memory(memory_class, events)
        assert Memory.of_rows(memory_class, ledger(events).rows).rows == own.rows, seed


def test_what_a_class_keeps_decides_just_the_queries_that_it_covers() -> None:
    """Proposition 2c, exhaustively over streams of up to three atoms of two values and sources."""
    # covered: streams that leave the same state have the same answer, which is the ledger's;
    # not covered: two streams leave the same state and differ in the answer; but what is in open
    # conflict is so by one relation, and who abstains knows the sides: that is refused as untyped
    said = tuple(product(("a", "b", "a x"), ("ann", "bob"), RELATIONS_SAID))
    streams = [each for length in (1, 2, 3) for each in product(said, repeat=length)]
    answers: dict[tuple[MemoryClass, QueryClass], dict[bytes, set[Answer]]] = {}
    for stream in streams:
        events = [
            arrival(place, value, source, relation=relation)
            for place, (value, source, relation) in enumerate(stream)
        ]
        full = memory(MemoryClass.LEDGER, events)
        queries = [Query(KEY, each, turn=2) for each in QueryClass]
        truth = [ask(full, query) for query in queries]
        for memory_class in AWARE_CLASSES:
            less = Memory.of_rows(memory_class, full.rows)
            kept = canonical_bytes(less.kept(KEY))
            for query, gold in zip(queries, truth, strict=True):
                of_class = answers.setdefault((memory_class, query.query_class), {})
                of_class.setdefault(kept, set()).add(gold)
                if query.query_class in COVERED[memory_class]:
                    assert ask(less, query) == gold, (stream, query)
    for (memory_class, query_class), by_kept in answers.items():
        is_enough = all(len(found) == 1 for found in by_kept.values())
        is_untyped = query_class is QueryClass.CONFLICT_RELATION
        is_covered = query_class in COVERED[memory_class]
        assert is_enough == (is_covered or is_untyped), (memory_class, query_class)


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
