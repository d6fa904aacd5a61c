"""Many values on one key: what a crowd, or a hostile speaker, can make a conversation carry."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from processor.engine.snapshot import dump, load
from processor.evidence.answers import Query
from processor.evidence.fact import Arrival
from processor.evidence.fold import SIDES_MAX
from processor.evidence.granularity import is_finer
from processor.evidence.key import key_of
from processor.evidence.memories import AWARE_CLASSES, Memory
from processor.evidence.projection import ledger_of, made_up
from processor.evidence.readers import ask
from processor.evidence.renders import render
from processor.evidence.row import CONTRADICTED_MAX, LIVE_MAX, Row
from processor.evidence.tiers import structure_of
from schemas.derived import NoteCode, TurnEvent
from schemas.evidence import MemoryClass, QueryClass, RenderFormat
from tests.engine.given import Given, revise
from tests.evidence.streams import arrival, memory
from tests.evidence.test_join import Json, atom, outcome, seen


def crowd(count: int) -> Given:
    """A conversation in which as many speakers each give another value."""
    given = Given()
    for number in range(count):
        given.say(seen(f"o{number}", f"{number} s"), speaker=f"s{number}")
    return given


def row_of(given: Given) -> Row:
    """The row that they all speak about."""
    return ledger_of(given.conversation).rows[key_of("pool", "timeout")]


def test_a_new_value_is_in_conflict_with_the_one_in_force_and_the_newest() -> None:
    """However many contradict each other, one more costs a bounded number of conflicts."""
    given = crowd(CONTRADICTED_MAX + 10)
    row = row_of(given)
    newest = row.live[-1].place
    against = [conflict.old for conflict in row.conflicts if conflict.new == newest]
    assert against == [0, *range(newest - CONTRADICTED_MAX + 1, newest)]
    assert row.is_unresolved
    of_newest = given.conversation.state.disputed[f"o{newest}"]
    assert len(of_newest) == SIDES_MAX


def test_a_full_row_takes_nothing_more_in_and_says_so() -> None:
    """What comes too many is disputed and noted, and the ledger is the same when made up again."""
    given = crowd(LIVE_MAX + 1)
    turn = given.utter(operations=[seen("late", "9 h")], speaker="eve")[0]
    assert isinstance(turn, TurnEvent)
    (note,) = turn.notes
    assert (note.code, note.records) == (NoteCode.BOUND_EXCEEDED, ("late",))
    assert len(row_of(given).live) == LIVE_MAX
    assert "late" in given.conversation.state.disputed
    assert made_up(given.conversation).rows == dict(ledger_of(given.conversation).rows)
    assert made_up(load(dump(given.conversation))).rows == made_up(given.conversation).rows
    given.say(seen("last", "8 h", relation="supersedes"), speaker="eve")
    assert [holding.facts[0].record for holding in row_of(given).live] == ["last"]


def test_a_revised_side_ends_its_own_disputes_and_leaves_the_others() -> None:
    """Open disputes are found by record, also after a snapshot."""
    given = crowd(4)
    before = {id_: list(places) for id_, places in given.conversation.state.disputed.items()}
    assert load(dump(given.conversation)).state.disputed == before
    given.say(revise("o1", "o2"), speaker="s1")
    state = given.conversation.state
    open_places = [n for n, each in enumerate(state.disputes) if each.cleared_turn is None]
    assert sorted({n for places in state.disputed.values() for n in places}) == open_places
    assert sorted(state.disputed) == ["o0", "o2", "o3"]
    assert load(dump(given.conversation)).state.disputed == state.disputed


def test_protected_values_are_noted_once_for_each_holding() -> None:
    """A turn that a policy holds back keeps one record of what protects, not all of them."""
    given = Given()
    for number in range(20):
        given.say(seen(f"t{number}", "5 s"), speaker="probe", role="tool")
    given.say(seen("u", "9 s", relation="supersedes"))
    conversation = given.conversation
    assert conversation.atom_sources[conversation.turn].protected == ("t0",)
    assert made_up(conversation).rows == dict(ledger_of(conversation).rows)
    assert outcome(given, "u") == "abstain"


def test_an_utterance_full_of_values_takes_seconds() -> None:
    """Six hundred values that contradict each other, in one utterance: once it took minutes."""
    operations: list[Json] = [
        {**seen(f"o{n}", "0"), "atoms": [atom(f"{n}x{i}") for i in range(20)], "speaker": f"s{n}"}
        for n in range(30)
    ]
    given = Given()
    started = time.process_time()
    given.say(*operations)
    assert time.process_time() - started < 10
    assert len(row_of(given).live) == LIVE_MAX


def dated(place: int) -> str:
    """A year, the earlier the later the place."""
    return str(9_999 - place % 8_000)


SHAPES: dict[str, Callable[[int], Arrival]] = {
    "replaced": lambda n: arrival(n, f"{n} s", valid_from=dated(-n)),
    "disputed": lambda n: arrival(n, "ab"[n % 2], ("ann", "bob")[n % 2], valid_from=dated(n)),
    "denied": lambda n: arrival(n, f"{n} s", polarity=False, valid_from=dated(n)),
    "one undated": lambda n: arrival(n, f"{n} s", valid_from=dated(n) if n != 5_000 else None),
    "said and denied": lambda n: arrival(n, "a" if n % 2 else f"{n} s", polarity=bool(n % 2)),
    "a crowd": lambda n: arrival(n, f"{n % 200} s", f"s{n % 200}", valid_from=dated(n)),
}


COUNT = 10_240


@pytest.fixture(scope="module")
def a_full_row_s() -> float:
    """What it takes here to keep so many values of which none replaces another."""
    events = [SHAPES["denied"](place) for place in range(COUNT)]
    started = time.process_time()
    memory(MemoryClass.LEDGER, events)
    return time.process_time() - started


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_values_of_one_key_are_kept_asked_and_shown(
    shape: str, a_full_row_s: float
) -> None:
    """By every class and query: what is compared does not grow with the square of the values."""
    events = [SHAPES[shape](place) for place in range(COUNT)]
    ledger_of_all = memory(MemoryClass.LEDGER, events)
    key = events[0].fact.key
    for memory_class in MemoryClass:
        started = time.process_time()
        is_aware = memory_class in AWARE_CLASSES
        rows = ledger_of_all.rows
        kept = Memory.of_rows(memory_class, rows) if is_aware else memory(memory_class, events)
        for query_class in QueryClass:
            ask(kept, Query(key, query_class, turn=5_000))
        render(kept, RenderFormat.COMPACT, len, 1_000, closed=True)
        assert time.process_time() - started < 3 * a_full_row_s, memory_class
    started = time.process_time()
    structure_of(memory(MemoryClass.GRAPHRAG_LITE, events).facts(key))
    assert time.process_time() - started < a_full_row_s


def test_long_values_are_compared_word_by_word_in_little_time() -> None:
    """Whether one value is finer than another costs one search, also where words repeat."""
    long, part = "a b " * 250, "a b " * 120 + "c"
    started = time.process_time()
    for number in range(2_000):
        assert not is_finer(f"{long}{number}", part)
    assert time.process_time() - started < 2
    assert is_finer("Rome, Italy", "Rome")
    assert is_finer("Italy, Rome", "Rome")
    assert not is_finer("Romeo", "Rome")
