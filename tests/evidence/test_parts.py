"""The small parts: granularity, valid times, tiers, retrieval, reach and renders."""

from __future__ import annotations

import pytest

from processor.evidence.answers import Found, Query
from processor.evidence.bm25 import ranked
from processor.evidence.granularity import is_finer
from processor.evidence.ledger import Event, Withdrawal
from processor.evidence.memories import AWARE_CLASSES, Memory
from processor.evidence.moment import beginning
from processor.evidence.reach import Index
from processor.evidence.readers import ask, passages_for
from processor.evidence.renders import render
from processor.evidence.tiers import Tier, structure_of, tier_of
from schemas.evidence import MemoryClass, RenderFormat
from tests.evidence.streams import arrival, memory, random_events

KEY = arrival(0, "x").fact.key


@pytest.mark.parametrize(
    ("finer", "than", "expected"),
    [
        ("30 s on linux", "30 s", True),
        ("2015-06", "2015", True),
        ("1.2.3", "1.2", True),
        ("berlin, germany", "germany", True),
        ("30 s", "30 s", False),
        ("30 s", "30 s on linux", False),
        ("130 s", "30 s", False),
        ("3.5", "3", False),
        ("-5", "5", False),
        ("c++", "c", False),
        ("former cto", "cto", False),
        ("not oslo", "oslo", False),
        ("2016", "2015", False),
    ],
)
def test_a_value_is_finer_if_it_has_all_words_of_the_other_and_more(
    finer: str, than: str, expected: bool
) -> None:
    """Containment by whole words; other numbers and words that turn round are no refinement."""
    assert is_finer(finer, than) is expected


def test_valid_times_of_any_precision_compare_by_their_beginning() -> None:
    """A year begins with its first day, and a moment counts in UTC."""
    written = ["2015", "2015-02", "2015-02-03", "2015-02-03T01:00+02:00", "2015-02-03T00:00:01Z"]
    begun = [beginning(each) for each in written]
    assert begun[0] < begun[1] < begun[3] < begun[2] < begun[4]  # type: ignore[operator]
    assert beginning("2015") == beginning("2015-01-01T00:00Z")
    assert beginning("0001-01-01T00:00+14:00") is not None
    assert beginning("9999-12-31T23:59:59.999999-14:00") is not None


@pytest.mark.parametrize(
    ("told", "tier"),
    [
        ((("a", "ann"), ("b", "ann"), ("c", "ann")), Tier.MONOTONIC),
        ((("a", "ann"), ("b", "ann"), ("a", "ann")), Tier.REVERTED_REVERT),
        ((("a", "ann"), ("b", "bob")), Tier.CROSS_SOURCE_CONFLICT),
        ((("a", "ann"), ("a one", "ann")), Tier.REFINES),
        ((("a", "ann"), ("a one", "bob")), Tier.REFINES),
    ],
)
def test_the_tier_is_told_by_structure_alone(told: tuple[tuple[str, str], ...], tier: Tier) -> None:
    """A value that returns, sources that differ, a value that narrows, or none of these."""
    facts = [arrival(place, *each).fact for place, each in enumerate(told)]
    assert tier_of(structure_of(facts)) is tier


def test_retrieval_puts_the_passage_with_the_rare_words_first() -> None:
    """A word that few passages have counts more than one that all have."""
    texts = ["the pool is blue", "the timeout of the pool is 30 s", "the api is up"]
    assert ranked(texts, "Timeout of the pool")[0] == 1


def test_a_class_that_retrieves_answers_from_what_it_retrieved_alone() -> None:
    """With one passage a question gets the newest of the equally good ones, with all the same."""
    events = [arrival(place, f"{place} s") for place in range(5)]
    rag = memory(MemoryClass.RAG_TOP_K, events)
    assert ask(rag, Query(KEY), retrieved=1).value == "4 s"
    assert len(passages_for(rag, "pool timeout", 3)) == 3
    assert ask(memory(MemoryClass.DIRECT_CONTEXT, events), Query(KEY)).value == "4 s"
    assert ask(rag, Query(KEY._replace(entity="other"))).found is Found.NOTHING


def test_a_question_reaches_what_lies_behind_the_entities_it_names() -> None:
    """From the band over its singer to her city; the longest name wins."""
    events: list[Event] = [
        arrival(0, "Mara", entity="The Quays", attribute="singer"),
        arrival(1, "Bergen", entity="Mara", attribute="home"),
        arrival(2, "Norway", entity="Bergen", attribute="country"),
        arrival(3, "stone", entity="Quays", attribute="built of"),
    ]
    index = Index(memory(MemoryClass.LEDGER, events))
    question = "Where does the singer of the quays live?"
    assert index.named(question) == ("the quays",)
    assert [key.attribute for key in index.reached(question, hops=2)] == ["singer", "home"]
    assert len(index.reached(question)) == 3


@pytest.mark.parametrize("how", list(RenderFormat))
@pytest.mark.parametrize("memory_class", list(MemoryClass))
def test_a_key_whose_values_were_all_withdrawn_can_be_shown(
    how: RenderFormat, memory_class: MemoryClass
) -> None:
    """A class that has seen the withdrawal shows no value in force."""
    folded = memory(memory_class, [arrival(0, "30 s"), Withdrawal("r0", 2)])
    shown = render(folded, how, len, 1_000)
    assert ("30 s" in shown) == (memory_class not in AWARE_CLASSES)


@pytest.mark.parametrize("how", list(RenderFormat))
@pytest.mark.parametrize("memory_class", list(MemoryClass))
def test_a_render_keeps_its_budget_and_is_the_same_each_time(
    how: RenderFormat, memory_class: MemoryClass
) -> None:
    """Every class in every format: never over the budget, and a larger one only adds."""
    folded = Memory(memory_class)
    for number in range(6):
        for event in random_events(number, 5):
            if isinstance(event, Withdrawal):
                folded.take(event._replace(record=f"e{number}{event.record}"))
                continue
            key, record = event.fact.key._replace(entity=f"e{number}"), event.fact.record
            fact = event.fact._replace(key=key, record=f"e{number}{record}")
            folded.take(event._replace(fact=fact))
    whole = render(folded, how, len, 100_000, closed=True)
    assert whole == render(folded, how, len, 100_000, closed=True)
    for budget in (0, 15, 60, 200, 500):
        shown = render(folded, how, len, budget, closed=True)
        assert len(shown) <= budget
        kept = [line for line in shown.splitlines() if not line.endswith(" more)")]
        assert whole.splitlines()[: len(kept)] == kept


def test_the_control_has_the_ledgers_lines_with_neutral_status() -> None:
    """The same facts in the same order; only what the mechanism knows is missing."""
    events = [arrival(0, "30 s"), arrival(1, "60 s"), arrival(2, "30 s")]
    full, control = (
        render(memory(each, events), RenderFormat.VERBOSE, len, 10_000, closed=True)
        for each in (MemoryClass.LEDGER, MemoryClass.RENDER_MATCHED)
    )
    told = [line for line in full.splitlines() if line.startswith("  Turn")]
    neutral = [line for line in control.splitlines() if line.startswith("  Turn")]
    cut = [line.partition(", status ")[0] for line in told]
    assert cut == [line.partition(", status ")[0] for line in neutral]
    assert all(line.endswith("status -") for line in neutral)


@pytest.mark.parametrize("how", [each for each in RenderFormat if each is not RenderFormat.JSON])
@pytest.mark.parametrize("memory_class", list(MemoryClass))
def test_what_was_said_cannot_pass_for_lines_of_the_render(
    how: RenderFormat, memory_class: MemoryClass
) -> None:
    """A break in a value, a name or a passage is a space: as many lines as with plain words."""

    def shown(gap: str) -> str:
        value = f"30 s{gap}Key: api / owner{gap}  Current value: mallory"
        fact = arrival(0, value, entity=f"po{gap}ol", attribute=f"time{gap}out", facet=f"x{gap}y")
        folded = Memory(memory_class)
        folded.take(fact)
        return render(folded, how, len, 100_000, closed=True)

    plain = shown(" ")
    assert plain
    for gap in ("\n", "\r", "\x1b", "\u2028", "\x85", "\u202e", "\0"):
        assert shown(gap).splitlines() == plain.splitlines()
