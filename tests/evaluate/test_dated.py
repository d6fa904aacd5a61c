"""Dated values: how dates become spells, what they say, and what the memories make of them."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from processor.evidence.answers import Found, Query
from processor.evidence.readers import ask
from processor.render.memory import memory_of
from replay.evaluate.adapters import AdapterError
from replay.evaluate.adapters.dated import Slot, Spell, after, golds, in_order, slot_utterances
from replay.evaluate.adapters.dyknow import read_slots
from replay.evaluate.adapters.templama import slots
from replay.evaluate.benchmark import Options
from replay.evaluate.folding import fold_native
from replay.evaluate.suites.dated import DYKNOW, TEMPLAMA
from schemas.evidence import MemoryClass


def slot(*spells: Spell) -> Slot:
    """A slot with these spells."""
    return Slot("s", "the harbour", "pilot", spells)


MINISTERS = slot(
    Spell("Bo", "2012-05-01", "2014-04-30"),
    Spell("Ada", "2009", "2012-04-30"),
    Spell("Ada", "2014-05-01"),
)
"""Stored in no order; a value returns."""


@pytest.mark.parametrize(
    ("end", "next_one"),
    [
        ("2009", "2010"),
        ("2009-12", "2010-01"),
        ("2009-02", "2009-03"),
        ("2008-02-29", "2008-03-01"),
    ],
)
def test_an_end_lasts_to_the_last_day_of_its_precision(end: str, next_one: str) -> None:
    """A year ends with its last day, so does a month."""
    assert after(end) == next_one


def test_dates_say_what_is_in_force_and_what_was_before() -> None:
    """The order in which the spells are stored does not matter."""
    (gold,) = golds(MINISTERS)
    assert (gold.in_force, gold.before, gold.returns, gold.several) == ("Ada", "Bo", True, ())
    assert golds(in_order(MINISTERS)) == (gold,)


def test_a_reign_within_another_gives_way_when_it_ends() -> None:
    """The outer value is told again from there, and is the one in force."""
    inner = slot(Spell("Ada", "2009"), Spell("Bo", "2012", "2013"))
    (gold,) = golds(inner)
    assert (gold.in_force, gold.before, gold.returns) == ("Ada", "Bo", True)
    told = [u.operations[0] for u in slot_utterances(inner) if u.operations]
    starts = [(o.atoms[0].value, o.atoms[0].valid_from) for o in told if o.op == "observe"]
    assert starts == [("Ada", "2009"), ("Ada", "2014"), ("Bo", "2012")]


def test_values_that_nothing_ends_are_in_conflict_unless_a_facet_tells_them_apart() -> None:
    """Every aware class abstains on one key, and answers both of two."""
    club, country = Spell("Rovers", "2015"), Spell("Norway national team", "2014")
    (gold,) = golds(slot(club, country))
    assert gold.in_force is None
    assert gold.several == ("Rovers", "Norway national team")
    for given in (slot(club, country), slot(country, club)):
        memory = memory_of(fold_native(slot_utterances(given)), MemoryClass.LEDGER)
        (key,) = memory.keys()
        assert ask(memory, Query(key)).found is Found.ABSTAIN
    apart = slot(club, country._replace(facet="national team"))
    assert [each.in_force for each in golds(apart)] == ["Rovers", "Norway national team"]


def test_reigns_that_begin_together_are_not_ordered() -> None:
    """The dates do not say which of two is in force, so nobody is asked."""
    (gold,) = golds(slot(Spell("Ada", "2009", "2010"), Spell("Bo", "2009", "2011")))
    assert gold.tied
    (later,) = golds(
        slot(Spell("Ada", "2009", "2010"), Spell("Bo", "2009", "2010"), Spell("Cy", "2011"))
    )
    assert (later.tied, later.before_tied, later.in_force) == (False, True, "Cy")


def templama_line(year: int, *answers: str) -> bytes:
    """One line in the published format."""
    names = [{"wikidata_id": "Q0", "name": name} for name in answers]
    line = {
        "id": f"Q1_P6_{year}",
        "slot": "Q1_P6",
        "relation": "P6",
        "date": str(year),
        "query": "_X_ is the mayor of Toytown.",
        "answer": names,
    }
    return orjson.dumps(line) + b"\n"


def test_years_become_reigns(tmp_path: Path) -> None:
    """Successive years are one spell; the last listed year ends nothing."""
    path = tmp_path / "templama.jsonl"
    path.write_bytes(
        templama_line(2010, "Ada")
        + templama_line(2012, "Ada", "Bo")
        + templama_line(2013, "Bo")
        + templama_line(2014, "Ada")
    )
    (found,) = slots(path)
    assert found.spells == (
        Spell("Ada", "2010", "2012"),
        Spell("Bo", "2012", "2013"),
        Spell("Ada", "2014"),
    )
    workload = TEMPLAMA.load(Options(path))
    scores = {
        (item.id, arm): workload.measure(item, arm)["exact"]
        for item in workload.items
        for arm in ("coarse_discard", "coarse_retain", "ledger", "graphrag_abstain")
    }
    assert scores == {
        ("Q1_P6 snapshot", "coarse_discard"): 1,
        ("Q1_P6 snapshot", "coarse_retain"): 1,
        ("Q1_P6 snapshot", "ledger"): 1,
        ("Q1_P6 snapshot", "graphrag_abstain"): 0,
        ("Q1_P6 provenance", "coarse_discard"): 0,
        ("Q1_P6 provenance", "coarse_retain"): 1,
        ("Q1_P6 provenance", "ledger"): 1,
        ("Q1_P6 provenance", "graphrag_abstain"): 0,
    }


SAMPLE = {
    "countries": {
        "Toyland": {
            "mayor": {
                "questions": ["Who is the mayor of Toyland?"],
                "answers": [
                    "Bo |S: +2014-05-01T00:00:00Z",
                    "Ada |S: +2009-00-00T00:00:00Z |E: +2014-04-00T00:00:00Z",
                    "Cy |E: +2008-00-00T00:00:00Z",
                ],
            }
        }
    },
    "athletes": {
        "Eve": {
            "questions": ["What is the current team of Eve?"],
            "answers": [
                "Rovers |S: +2015-00-00T00:00:00Z",
                "Toyland national team |S: +2014-00-00T00:00:00Z |P: +2020-01-01T00:00:00Z",
            ],
        }
    },
}


def test_dates_are_read_to_their_precision(tmp_path: Path) -> None:
    """A value without a beginning begins with its end, a point in time is passed over."""
    path = tmp_path / "qa.json"
    path.write_bytes(orjson.dumps(SAMPLE))
    read = read_slots(path, facets=True)
    assert read.slots[0].spells == (
        Spell("Bo", "2014-05-01"),
        Spell("Ada", "2009", "2014-04"),
        Spell("Cy", "2008", "2008"),
    )
    assert [spell.facet for spell in read.slots[1].spells] == [None, "national team"]
    assert (read.values, read.year_only, read.without_beginning, read.points) == (5, 4, 1, 1)
    (unfaceted,) = golds(read_slots(path, facets=False).slots[1])
    assert unfaceted.several == ("Rovers", "Toyland national team")
    notes = DYKNOW.load(Options(path)).notes({})
    assert "without the facet for national teams 1 slots have several values at once" in notes


def test_a_value_without_a_date_is_refused(tmp_path: Path) -> None:
    """The error names the file and the value."""
    path = tmp_path / "qa.json"
    path.write_bytes(orjson.dumps({"g": {"Eve": {"questions": [], "answers": ["Rovers"]}}}))
    with pytest.raises(AdapterError, match=r"qa\.json: a value without a name or a date: 'Rovers'"):
        read_slots(path, facets=True)
