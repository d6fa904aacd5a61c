"""Claims that are compared with records word for word, and the interpreter around a model."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from processor.app.interpret import interpret
from processor.app.utterance_reader import UtteranceReader
from processor.engine.conversation import Conversation
from processor.evidence.fold import Folded, fold
from processor.interpreter.candidates import match_claims, match_draft, normalised
from processor.interpreter.matching import EXACT_MATCH, MatchingInterpreter
from processor.interpreter.port import Interpreted, Reading, Refused, Unreadable
from schemas.derived import Outcome, UngroundedAlert, VerdictEvent, VerdictReason
from schemas.log import Interpretation
from schemas.utterance import CandidateClaim, Utterance
from schemas.wire import decode_utterance
from tests.engine.given import Given, hypothesize, inline, observe, revise

MODEL = Interpretation(interpreter="scripted", attempts=1)


class Scripted:
    """A model that gives the same answer every time, and counts how often it was asked."""

    def __init__(self, answer: Interpreted) -> None:
        self._answer = answer
        self.asked = 0

    async def interpret(
        self, conversation: Conversation, utterance: Utterance, refused: Refused | None
    ) -> Interpreted:
        """The answer."""
        self.asked += 1
        return self._answer


def draft(text: str, utterance_id: str = "d1", **fields: Any) -> Utterance:
    """A draft in words alone."""
    said = {
        "conversation_id": "c",
        "utterance_id": utterance_id,
        "speaker": "bot",
        "role": "assistant",
        "kind": "candidate",
        "text": text,
        "at": "2026-03-01T02:31:00Z",
        **fields,
    }
    return decode_utterance(orjson.dumps(said))


def read(given: Given, model: Scripted, utterance: Utterance) -> Interpreted:
    """What comes of an utterance when the model is asked where it must be."""
    return asyncio.run(MatchingInterpreter(model).interpret(given.conversation, utterance, None))


def verdicts(given: Given, utterance: Utterance, reading: Interpreted) -> list[VerdictEvent]:
    """The verdicts on a draft that was read."""
    event = interpret(given.conversation, utterance, reading=reading)
    assert not isinstance(event, tuple), event
    folded = fold(given.conversation, event)
    assert isinstance(folded, Folded)
    return [event for event in folded.events if isinstance(event, VerdictEvent)]


@pytest.fixture
def given() -> Given:
    """A conversation with three claims, two of which are the same."""
    given = Given()
    given.say(
        observe("o1", claim="The pool is used up."), observe("o2", claim="The limit is 1.5 s.")
    )
    given.say(observe("twice", claim="It rained."), observe("again", claim="it rained"))
    return given


@pytest.mark.parametrize(
    ("claim", "same"),
    [
        ("the POOL is  used up", True),
        ("\u201cThe pool is used up!\u201d", True),
        ("The pool\nis used up.", True),
        ("The pool is used up?", False),
        ("The pool is not used up.", False),
        ("The pool, is used up.", False),
        ("The pool is used up. Or not.", False),
    ],
)
def test_what_counts_as_the_same_claim(claim: str, same: bool) -> None:
    """Case, white space, quotes and the mark at the end do not count; a question mark does."""
    assert (normalised(claim) == normalised("The pool is used up.")) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("caf\u00e9 closed", "cafe\u0301 closed", True),
        ("it's \u2013 fine", "it\u2019s - fine", True),
        ("Stra\u00dfe", "STRASSE", True),
        ("1.5", "15", False),
        ("-5 degrees", "5 degrees", False),
    ],
)
def test_forms_of_the_same_letters_are_one(one: str, other: str, same: bool) -> None:
    """Composed letters, quotes and dashes have one form; marks inside a claim count."""
    assert (normalised(one) == normalised(other)) is same


def test_a_draft_that_repeats_records_needs_no_model(given: Given) -> None:
    """Where every sentence is the claim of one record, each rests on it and no model is asked."""
    model = Scripted(Unreadable(MODEL, "never asked"))
    reading = read(given, model, draft("The pool is used up. the limit is 1.5 s"))
    assert isinstance(reading, Reading)
    assert (reading.provenance, model.asked) == (EXACT_MATCH, 0)
    assert [(claim.text, claim.record) for claim in reading.claims or ()] == [
        ("The pool is used up.", "o1"),
        ("the limit is 1.5 s", "o2"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "It rained.",
        "The pool is used up. Sure, happy to help.",
        "The pool is used up, so the limit is 1.5 s.",
        "Is it true that the pool is used up?",
        "",
    ],
)
def test_any_other_draft_is_read_by_the_model(given: Given, text: str) -> None:
    """A tie, a sentence of its own, and an empty draft are not guessed at."""
    assert match_draft(given.conversation.state, text) is None
    model = Scripted(Reading(MODEL, claims=()))
    assert read(given, model, draft(text)) == Reading(MODEL, claims=())
    assert model.asked == 1


def test_the_very_words_of_a_record_beat_what_a_model_says(given: Given) -> None:
    """A claim that one record makes rests on that; of a tie and of other words the model judges."""
    claims = (
        CandidateClaim(text="The pool is used up", record="o2"),
        CandidateClaim(text="The pool is used up.", records=("o1", "o2")),
        CandidateClaim(text="The limit is 1.5 s.", record="ghost"),
        CandidateClaim(text="The limit is 1.5 s."),
        CandidateClaim(text="It rained", record="again"),
        CandidateClaim(text="It poured.", record="twice"),
        CandidateClaim(text="It snowed."),
    )
    matched = match_claims(given.conversation.state, claims)
    assert [claim.associated() for claim in matched] == [
        ("o1",),
        ("o1", "o2"),
        ("o2",),
        ("o2",),
        ("again",),
        ("twice",),
        (),
    ]
    assert [claim.text for claim in matched] == [claim.text for claim in claims]


def test_claims_are_compared_one_by_one(given: Given) -> None:
    """Of a draft's claims in words alone, a model is asked only for those no record makes."""
    model = Scripted(Reading(MODEL, claims=(CandidateClaim(text="It poured.", record="twice"),)))
    claims = [
        {"text": "the pool is used up"},
        {"text": "It poured."},
        {"text": "x", "record": "o2"},
    ]
    reader = UtteranceReader(MatchingInterpreter(model))
    reading = asyncio.run(reader.read(given.conversation, draft("anything", claims=claims)))
    assert isinstance(reading, Reading)
    assert [claim.associated() for claim in reading.claims or ()] == [("o1",), ("twice",), ("o2",)]
    assert model.asked == 1


def test_thirty_greetings_are_no_claims(given: Given) -> None:
    """Thirty drafts in which a model finds no claim give thirty no_claims, nothing ungrounded."""
    model = Scripted(Reading(MODEL, claims=()))
    for number in range(30):
        utterance = draft("Sure, happy to help.", f"d{number}")
        (verdict,) = verdicts(given, utterance, read(given, model, utterance))
        assert (verdict.outcome, verdict.reason) == (Outcome.NO_CLAIMS, None)
    assert model.asked == 30


def test_a_premise_withdrawn_long_ago_is_seen_in_words_alone() -> None:
    """Planted at 2, withdrawn at 4, repeated at 9 as text: ungrounded, and the fall is named."""
    given = Given()
    given.say(observe("a"))
    given.say(observe("p", claim="The contract ends in May."))
    given.say(hypothesize("h", "p", claim="We must renew by April."))
    given.say(revise("p", inline("n", claim="The contract was extended.")))
    for number in range(5):
        given.say(observe(f"talk{number}"))
    utterance = draft("We must renew by April.")
    model = Scripted(Unreadable(MODEL, "never asked"))
    (verdict,) = verdicts(given, utterance, read(given, model, utterance))
    assert (verdict.turn, verdict.outcome) == (9, Outcome.UNGROUNDED)
    assert [(f.record, f.since_turn, f.path) for f in verdict.failures] == [("p", 4, ("h", "p"))]


def test_a_withdrawn_claim_is_matched_as_well(given: Given) -> None:
    """Repeating what was given up is not overlooked: it rests on the record that does not stand."""
    given.say(revise("o1", inline("n")))
    utterance = draft("The pool is used up.")
    model = Scripted(Unreadable(MODEL, "never asked"))
    (verdict,) = verdicts(given, utterance, read(given, model, utterance))
    assert verdict.reason is VerdictReason.WITHDRAWN_SUPPORT


def test_without_a_model_a_claim_stays_unassociated(given: Given) -> None:
    """The native interpreter does not compare: words alone rest on no record."""
    claims = [{"text": "The pool is used up."}]
    events = given.utter(kind="candidate", text="The pool is used up.", claims=claims)
    assert isinstance(events[0], VerdictEvent)
    assert events[0].reason is VerdictReason.NO_RECORD
    assert isinstance(events[1], UngroundedAlert)


def test_what_a_model_cannot_read_is_handed_on(given: Given) -> None:
    """A failure of the model stays one, for drafts and for statements."""
    failed = Unreadable(MODEL, "cut off")
    assert read(given, Scripted(failed), draft("Something else.")) == failed
    statement = draft("Something else.", kind="statement")
    assert read(given, Scripted(failed), statement) == failed
