"""What the ledger means for the dependency map: revisions, disputes, late atoms, and policy."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import orjson
import pytest

from processor.app.interpret import interpret
from processor.engine.conversation import Conversation
from processor.engine.snapshot import dump, load
from processor.engine.verify import verify
from processor.evidence.fold import Folded, fold
from processor.evidence.key import key_of
from processor.evidence.memories import Memory
from processor.evidence.projection import events_of, ledger_of, made_up
from processor.evidence.renders import render
from processor.interpreter.native import NATIVE
from processor.interpreter.port import Reading
from schemas.derived import NoteCode, Outcome, RetractionImpact, Standing
from schemas.evidence import MemoryClass, RenderFormat, Supersession
from schemas.log import OperationsAppended
from schemas.wire import decode_utterance
from tests.engine.given import Given, hypothesize, observe, resolve, revise

Json = dict[str, Any]


def atom(value: str, attribute: str = "timeout", **fields: object) -> Json:
    """An atom about the pool."""
    return {"entity": "pool", "attribute": attribute, "value": value, **fields}


def seen(record: str, value: str, attribute: str = "timeout", **fields: object) -> Json:
    """An observation that gives the pool a value."""
    return observe(record, atoms=[atom(value, attribute, **fields)])


def standing(given: Given, record: str) -> Standing:
    """The standing of a record."""
    return given.conversation.state.records[record].standing


def outcome(given: Given, record: str) -> Outcome:
    """The answer to a claim that rests on the record."""
    return verify(given.conversation.state, (record,)).outcome


def value_of(given: Given, attribute: str = "timeout") -> list[str]:
    """The live values of a key of the pool."""
    row = ledger_of(given.conversation).rows[key_of("pool", attribute)]
    return [holding.facts[0].value for holding in row.live]


def test_a_superseded_value_revises_its_record_and_reports_what_rested_on_it() -> None:
    """A new value by the same source acts as a revision, with its impact and its cause."""
    given = Given()
    given.say(seen("o1", "30 s"), hypothesize("h1", "o1"), resolve("h1"))
    _, impact, *_ = given.utter(operations=[seen("o2", "60 s")])
    assert isinstance(impact, RetractionImpact)
    assert (impact.withdrawn, impact.cause, impact.by) == ("o1", "supersedes", "o2")
    assert impact.newly_ungrounded == ("h1",)
    assert impact.decisions == ("h1",)
    assert standing(given, "o1") is Standing.ABANDONED
    assert outcome(given, "o2") is Outcome.GROUNDED
    assert outcome(given, "h1") is Outcome.UNGROUNDED


def test_a_contradiction_disputes_both_records_until_one_is_superseded() -> None:
    """Two sources that differ: a candidate resting on either abstains, with both sides."""
    given = Given()
    given.say(seen("o1", "30 s"))
    given.say(seen("o2", "60 s"), speaker="bob")
    for record in ("o1", "o2"):
        verdict = verify(given.conversation.state, (record,))
        assert verdict.outcome is Outcome.ABSTAIN
    assert sorted(given.conversation.state.disputed) == ["o1", "o2"]
    given.say(seen("o3", "60 s", relation="supersedes", of=["o1"]), speaker="eve")
    assert standing(given, "o1") is Standing.ABANDONED
    assert given.conversation.state.disputed == {}
    assert outcome(given, "o2") is outcome(given, "o3") is Outcome.GROUNDED


def test_a_candidate_on_a_disputed_record_abstains_and_names_the_disputed_records() -> None:
    """The verdict of a draft that rests on both sides names both."""
    given = Given()
    given.say(seen("o1", "30 s"))
    given.say(seen("o2", "60 s"), speaker="bob")
    claims = [{"text": "it is 30 s", "records": ["o1", "o2"]}]
    (verdict,) = given.utter(kind="candidate", claims=claims)
    assert (verdict.outcome, verdict.disputed) == (Outcome.ABSTAIN, ("o1", "o2"))  # type: ignore[union-attr]


def test_a_revision_that_comes_with_the_new_value_is_the_word_that_it_supersedes() -> None:
    """Somebody else's value is replaced, not disputed, where the turn revises its record."""
    given = Given()
    given.say(seen("o1", "30 s"))
    given.say(seen("o2", "60 s"), revise("o1", "o2"), speaker="bob")
    assert value_of(given) == ["60 s"]
    assert given.conversation.state.disputed == {}


def test_a_withdrawn_record_takes_its_atoms_out_of_force() -> None:
    """A value whose record was given up without a replacement is no value any more."""
    given = Given()
    given.say(seen("o1", "30 s"), observe("o2"))
    given.say(revise("o1", "o2"))
    assert value_of(given) == []


@pytest.mark.parametrize(
    ("policy", "by_rule", "by_word"),
    [
        (Supersession.OFF, Standing.ACTIVE, Standing.ACTIVE),
        (Supersession.EXPLICIT, Standing.ACTIVE, Standing.ABANDONED),
        (Supersession.SAME_KEY_SAME_SOURCE, Standing.ABANDONED, Standing.ABANDONED),
    ],
)
def test_the_policy_in_the_log_decides(
    policy: Supersession, by_rule: Standing, by_word: Standing
) -> None:
    """Off leaves the map alone, explicit needs the relation, the default takes the same source."""
    for said, expected in ((None, by_rule), ("supersedes", by_word)):
        conversation = Conversation.empty("default", "c")
        for number, value in enumerate(("30 s", "60 s")):
            relation = said if number else None
            operation = seen(f"o{number}", value, relation=relation)
            folded = fold(conversation, logged(conversation, [operation], policy))
            assert isinstance(folded, Folded)
        assert conversation.state.records["o0"].standing is expected
        disputed = policy is Supersession.EXPLICIT and said is None
        assert bool(conversation.state.disputed) is disputed


def logged(
    conversation: Conversation, operations: list[Json], policy: Supersession
) -> OperationsAppended:
    """The next event of a conversation under a policy."""
    utterance = {
        "conversation_id": "c",
        "utterance_id": f"u{conversation.sequence}",
        "speaker": "ann",
        "at": "2026-03-01T02:31:00Z",
        "operations": operations,
    }
    event = interpret(conversation, decode_utterance(orjson.dumps(utterance)))
    assert isinstance(event, OperationsAppended)
    return event.model_copy(update={"supersession": policy})


def test_under_the_first_rules_atoms_imply_nothing() -> None:
    """An old log folds as it did: its atoms stand in the ledger, and the map is left alone."""
    conversation = Conversation.empty("default", "c")
    for number, value in enumerate(("30 s", "60 s")):
        event = logged(conversation, [seen(f"o{number}", value)], Supersession.EXPLICIT)
        old = event.model_copy(update={"rules_version": 1, "supersession": None})
        assert isinstance(fold(conversation, old), Folded)
    assert conversation.state.records["o0"].standing is Standing.ACTIVE
    (row,) = ledger_of(conversation).rows.values()
    assert [h.facts[0].value for h in row.live] == ["60 s"]


def test_the_model_is_contracted_before_the_new_value_is_announced() -> None:
    """Two formulas that exclude each other: the later one is believed and nothing is in dispute."""
    given = Given()
    given.say({**seen("o1", "30 s"), "formula": "short"})
    turn = given.say({**seen("o2", "60 s"), "formula": "~short"})
    assert turn.notes == ()
    assert given.conversation.state.disputed == {}
    assert standing(given, "o1") is Standing.ABANDONED


def test_a_snapshot_leaves_the_same_ledger_and_the_same_future() -> None:
    """A conversation goes on from its bytes as if it had never been written out."""
    one = Given()
    said: list[tuple[list[Json], str]] = [
        ([seen("o1", "30 s"), seen("p1", "10", "size")], "ann"),
        ([seen("o2", "60 s")], "bob"),
        ([seen("o3", "60 s on linux"), revise("p1", "o3")], "bob"),
        ([seen("o4", "30 s", valid_from="2012")], "ann"),
        ([seen("o5", "90 s", valid_from="2010")], "ann"),
        ([seen("o6", "45 s", relation="supersedes")], "eve"),
    ]
    other = Given()
    for operations, speaker in said:
        one.say(*operations, speaker=speaker)
        other.conversation = load(dump(other.conversation))
        other.say(*operations, speaker=speaker)
        assert other.conversation.digest == one.conversation.digest
        assert other.conversation.state_digest() == one.conversation.state_digest()
        kept, again = ledger_of(one.conversation), made_up(one.conversation)
        assert dict(kept.rows) == dict(again.rows)
        assert kept.count == again.count


def test_a_record_that_loses_one_of_its_values_is_given_up_and_its_others_stay_in_force() -> None:
    """What it says does not hold as it was said: what rested on it falls, the ledger is exact."""
    given = Given()
    both = [
        {"entity": "Dana", "attribute": attribute, "value": value}
        for attribute, value in (("employer", "Arve"), ("home", "Rome"))
    ]
    given.say(observe("o1", atoms=both), hypothesize("h1", "o1"))
    given.say(observe("o2", atoms=[{**both[1], "value": "Oslo"}]), hypothesize("h2", "o2"))
    assert standing(given, "o1") is Standing.ABANDONED
    assert outcome(given, "h1") is Outcome.UNGROUNDED
    assert outcome(given, "h2") is Outcome.GROUNDED
    live = {
        key.attribute: [(fact.value, fact.record) for holding in row.live for fact in holding.facts]
        for key, row in ledger_of(given.conversation).rows.items()
    }
    assert live == {"employer": [("Arve", "o1")], "home": [("Oslo", "o2")]}


# -- what users complain about ------------------------------------------------------------------


def test_another_fact_about_the_same_person_retires_nothing() -> None:
    """Dana is CTO at Arve; that she also administers a repository leaves that as it was."""
    given = Given()
    facts = [("role", "CTO at Arve"), ("administers", "Arve's repository organisation")]
    for number, (attribute, value) in enumerate(facts):
        told = {"entity": "Dana", "attribute": attribute, "value": value}
        events = given.utter(operations=[observe(f"o{number}", atoms=[told])])
        assert not any(isinstance(event, RetractionImpact) for event in events)
    assert outcome(given, "o0") is outcome(given, "o1") is Outcome.GROUNDED


ATTRIBUTES = (
    *("role", "employer", "home town", "birthday", "diet", "manager", "laptop", "hobby", "pet"),
    *("language", "desk", "shift", "team", "badge", "parking", "locker", "car", "school", "phone"),
    *("mail", "time zone"),
)


def test_two_hundred_pairs_of_unrelated_facts_retire_nothing() -> None:
    """Facts about one person under different attributes: none is revised or disputed by another."""
    # different values, by one source or two, undated, dated apart, or the later told first:
    # whatever replaces, contradicts or comes late within one key would do so here
    pairs = list(combinations(ATTRIBUTES, 2))[:200]
    assert len(pairs) == 200
    for number, (one, other) in enumerate(pairs):
        given = Given()
        years = ((None, None), ("2020", "2024"), ("2024", "2020"))[number % 3]
        speakers = ("ann", ("ann", "bob")[number % 2])
        for place, attribute in enumerate((one, other)):
            value = f"{attribute} number {number % 7 + place}"
            told = {"entity": "Dana", "attribute": attribute, "value": value}
            dated = {**told, "valid_from": years[place]}
            operations = [observe(f"o{place}", atoms=[dated])]
            (turn,) = given.utter(operations=operations, speaker=speakers[place])
            assert not turn.notes
        assert not given.conversation.state.attacks
        assert not given.conversation.state.disputed
        assert outcome(given, "o0") is outcome(given, "o1") is Outcome.GROUNDED


def test_a_backfilled_older_fact_does_not_overwrite_the_newer_one() -> None:
    """Moved to Oslo in 2024, then word of Rome in 2020: Oslo stays, Rome is marked late."""
    given = Given()
    given.say(seen("o7", "Oslo", "home", valid_from="2024"))
    turn = given.say(seen("o3", "Rome", "home", valid_from="2020"), hypothesize("h1", "o3"))
    assert value_of(given, "home") == ["Oslo"]
    assert [note.code for note in turn.notes] == [NoteCode.LATE_ATOM]
    assert outcome(given, "o7") is Outcome.GROUNDED
    assert outcome(given, "o3") is outcome(given, "h1") is Outcome.UNGROUNDED


def test_a_turn_that_is_filled_later_counts_as_the_turn_it_was() -> None:
    """A statement that could be read only afterwards does not overwrite what came after it."""
    given = Given()
    silent = {
        "conversation_id": "c",
        "utterance_id": "late",
        "speaker": "ann",
        "at": "2026-03-01T02:31:00Z",
        "text": "I live in Rome",
    }
    utterance = decode_utterance(orjson.dumps(silent))
    failed = interpret(given.conversation, utterance)
    assert not isinstance(failed, tuple)
    assert isinstance(fold(given.conversation, failed), Folded)
    given.say(seen("o7", "Oslo", "home"))
    told = decode_utterance(orjson.dumps({**silent, "operations": [seen("o3", "Rome", "home")]}))
    assert told.operations is not None
    reading = Reading(NATIVE, told.operations, None)
    filling = interpret(given.conversation, utterance, reading=reading, fills_turn=1)
    assert not isinstance(filling, tuple)
    assert isinstance(fold(given.conversation, filling), Folded)
    assert value_of(given, "home") == ["Oslo"]
    assert standing(given, "o3") is Standing.ABANDONED


def test_superseded_text_is_not_shown_unless_it_is_asked_for() -> None:
    """What was in force once is left out of a render by default."""
    given = Given()
    given.say(seen("o1", "love", "opinion"))
    given.say(seen("o2", "hate", "opinion"))
    memory = Memory(MemoryClass.LEDGER)
    memory.take_all(event for event, _ in events_of(given.conversation))
    for how in RenderFormat:
        assert "love" not in render(memory, how, len, 10_000)
    assert "love" in render(memory, RenderFormat.VERBOSE, len, 10_000, closed=True)


def test_love_then_hate_leaves_the_new_in_force_and_the_old_in_the_history() -> None:
    """The opposite value replaces the old one, which stays in the row's history."""
    given = Given()
    given.say(seen("o1", "love", "opinion"))
    given.say(seen("o2", "hate", "opinion"))
    (row,) = ledger_of(given.conversation).rows.values()
    assert value_of(given, "opinion") == ["hate"]
    assert [closed.fact.value for closed in row.closed] == ["love"]


def test_the_same_fact_five_times_is_five_supports_and_stays_in_force() -> None:
    """Repeating a fact adds support; nothing is deleted, revised or disputed."""
    given = Given()
    for number in range(5):
        given.say(seen(f"o{number}", "30 s" if number % 2 else "30  S"))
    (row,) = ledger_of(given.conversation).rows.values()
    (holding,) = row.live
    assert holding.records() == ("o0", "o1", "o2", "o3", "o4")
    assert all(outcome(given, f"o{number}") is Outcome.GROUNDED for number in range(5))
