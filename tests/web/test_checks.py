"""The gate: what a check answers, what it leaves in the log, and what it does when asked again."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from processor.interpreter.port import Reading
from schemas.derived import VerdictEvent
from schemas.http import CheckAnswer
from schemas.log import CandidateAppended, Interpretation
from schemas.utterance import CandidateClaim
from schemas.wire import canonical_bytes
from tests.web.fake import AT, HERE, FakeConversations, observe, run, serving, statement

MODEL = Interpretation(interpreter="scripted", attempts=1)


def conversation() -> FakeConversations:
    """o2 was withdrawn, so h1, which rests on it, is not grounded; o1 and o3 stand."""
    said = FakeConversations()
    said.say(
        statement("u1", observe("o1"), observe("o2")),
        statement("u2", observe("h1", "o2"), observe("o3", "o1")),
        statement("u3", {"op": "undermine", "target": "o2", "evidence": "o1"}),
    )
    return said


def check(said: FakeConversations, claims: Any = None, **fields: Any) -> tuple[int, Any]:
    """Ask once."""

    async def main() -> tuple[int, Any]:
        async with serving(said) as client:
            return await client.check(claims, **fields)

    return run(main())


def drafts(said: FakeConversations) -> list[CandidateAppended]:
    """The drafts in the log."""
    events = [each.event for each in said.log["acme", "c1"]]
    return [event for event in events if isinstance(event, CandidateAppended)]


def test_a_recorded_check_is_answered_with_what_the_fold_says() -> None:
    """The verdicts are the derived events themselves, and the draft is in the log once."""
    said = conversation()
    status, answer = check(said, [{"text": "so", "record": "o3"}], candidate_id="d1")
    assert status == 200
    derived = [
        each for each in said.log["acme", "c1"][-1].derived if isinstance(each, VerdictEvent)
    ]
    assert answer["verdicts"] == orjson.loads(canonical_bytes(derived))
    assert (answer["outcome"], answer["recorded"]) == ("grounded", True)
    assert answer["verdicts"][0]["support"] == ["o1", "o3"]
    assert [event.utterance.id for event in drafts(said)] == ["d1"]
    assert CheckAnswer.model_validate_json(orjson.dumps(answer))


@pytest.mark.parametrize(
    ("claims", "text", "outcome", "reason"),
    [
        ([{"record": "o1"}, {"record": "h1"}], "", "ungrounded", "withdrawn_support"),
        ([{"text": "nobody said that"}], "", "ungrounded", "no_record"),
        ([{"records": ["o1", "unknown"]}], "", "ungrounded", "no_record"),
        ([{"records": ["o1", "o3"]}], "", "grounded", None),
        ([], "", "no_claims", None),
        (None, "Sure, happy to help.", "unverified", "no_claims_given"),
    ],
)
@pytest.mark.parametrize("record", [True, False])
def test_the_worst_claim_decides(
    claims: Any, text: str, outcome: str, reason: str | None, record: bool
) -> None:
    """The outcome of a draft is that of its worst claim, recorded or not."""
    status, answer = check(conversation(), claims, text=text, record=record)
    assert (status, answer["outcome"], answer["reason"]) == (200, outcome, reason)


def test_a_check_that_is_not_recorded_leaves_no_trace() -> None:
    """It says what the recorded one would, under ids that no event of the log can have."""
    said = conversation()
    before = len(said.log["acme", "c1"])
    claims = [{"text": "so", "record": "h1"}, {"text": "and", "record": "o1"}]
    _, unrecorded = check(said, claims, record=False, candidate_id="d1")
    _, again = check(said, claims, record=False, candidate_id="d1")
    assert unrecorded == again
    assert not unrecorded["recorded"]
    assert len(said.log["acme", "c1"]) == before
    _, recorded = check(said, claims, candidate_id="d1")
    place = ("event_id", "sequence", "digest")
    for one, other in zip(unrecorded["verdicts"], recorded["verdicts"], strict=True):
        assert {k: v for k, v in one.items() if k not in place} == {
            k: v for k, v in other.items() if k not in place
        }
        assert one["event_id"] != other["event_id"]


def test_a_draft_without_an_id_gets_one_of_its_own() -> None:
    """Recorded, every request is another draft; unrecorded, the same draft has the same id."""
    said = conversation()
    claims = [{"record": "o1"}]
    one, other = check(said, claims)[1], check(said, claims)[1]
    assert one["candidate_id"] != other["candidate_id"]
    one, other = check(said, claims, record=False)[1], check(said, claims, record=False)[1]
    assert one["candidate_id"] == other["candidate_id"]


@pytest.mark.parametrize("at", [None, AT])
def test_the_same_draft_again_gets_the_same_answer(at: str | None) -> None:
    """Also when what it rests on was withdrawn meanwhile, and it is in the log once."""
    said = conversation()
    asked: dict[str, Any] = {"candidate_id": "d1", **({} if at is None else {"at": at})}
    first = check(said, [{"record": "o3"}], **asked)
    said.say(statement("u4", {"op": "undermine", "target": "o1", "evidence": "o3"}))
    assert check(said, [{"record": "o3"}], **asked) == first
    assert len(drafts(said)) == 1
    assert check(said, [{"record": "o3"}], record=False)[1]["outcome"] == "ungrounded"


@pytest.mark.parametrize(
    "other",
    [
        {"claims": [{"record": "o1"}]},
        {"claims": [{"record": "o3"}], "speaker": "bob"},
        {"claims": [{"record": "o3"}], "text": "more"},
        {"claims": [{"record": "o3"}], "at": "2026-03-02T00:00:00Z"},
    ],
)
def test_an_id_that_was_used_for_another_draft_is_a_conflict(other: dict[str, Any]) -> None:
    """It names the field, and nothing is appended."""
    said = conversation()
    check(said, [{"record": "o3"}], candidate_id="d1", at=AT)
    status, problem = check(said, candidate_id="d1", **other)
    assert (status, problem["place"]) == (409, "candidate_id")
    assert problem["type"] == "urn:standfast:problem:id-reused"
    assert len(drafts(said)) == 1


def test_an_id_that_a_statement_has_is_a_conflict() -> None:
    """A draft cannot take the place of what was said."""
    assert check(conversation(), [{"record": "o1"}], candidate_id="u1")[0] == 409


def test_what_is_not_folded_in_time_is_pending() -> None:
    """The answer has the id to ask again with; asked again later, it has the verdict."""
    said = conversation()
    said.is_stuck = True
    status, pending = check(said, [{"record": "o1"}], wait_ms=20)
    assert (status, pending["outcome"], pending["reason"]) == (200, "pending", "not_folded_yet")
    assert (pending["verdicts"], pending["recorded"]) == ([], False)
    said.is_stuck = False
    said._fold(said.appended[0])
    _, answer = check(said, [{"record": "o1"}], candidate_id=pending["candidate_id"])
    assert answer["outcome"] == "grounded"
    assert len(drafts(said)) == 1


def test_a_check_waits_for_the_utterance_that_it_must_see() -> None:
    """It is answered on the state after it, though it was asked before."""

    async def main() -> None:
        said = conversation()
        async with serving(said) as client:
            asked = asyncio.create_task(
                client.check([{"record": "o9"}], after="u4", wait_ms=10_000)
            )
            while not said.waits:
                await asyncio.sleep(0.01)
            assert said.appended == []
            said.say(statement("u4", observe("o9")))
            status, answer = await asked
            assert (status, answer["outcome"], answer["verdicts"][0]["turn"]) == (
                200,
                "grounded",
                4,
            )

    run(main())


@pytest.mark.parametrize("record", [True, False])
def test_a_check_before_its_premises_is_pending_and_leaves_nothing(record: bool) -> None:
    """Nothing is appended, and nothing premature is said."""
    said = conversation()
    status, answer = check(said, [{"record": "o9"}], after="u9", wait_ms=10, record=record)
    assert (status, answer["outcome"], said.appended) == (200, "pending", [])


def test_a_rebalance_ends_the_wait() -> None:
    """Whoever waits is told to come again, and so is who comes then."""

    async def main() -> None:
        said = conversation()
        async with serving(said) as client:
            asked = asyncio.create_task(
                client.ask("POST", f"{HERE}/check", json={"after": "u9", "wait_ms": 20_000})
            )
            while not said.waits:
                await asyncio.sleep(0.01)
            said.rebalance()
            status, problem, response = await asked
            assert (status, problem["type"]) == (503, "urn:standfast:problem:rebalancing")
            assert int(response.headers["Retry-After"]) >= 1
            assert (await client.check([{"record": "o1"}]))[0] == 503

    run(main())


def test_claims_in_words_are_read_in_the_lane() -> None:
    """Without recording too; what the interpreter finds takes the place of the words."""
    said = conversation()
    said.reading = Reading(MODEL, claims=(CandidateClaim(text="it is", record="o3"),))
    _, answer = check(said, [{"text": "well, it is"}], record=False)
    assert (answer["outcome"], answer["verdicts"][0]["support"]) == ("grounded", ["o1", "o3"])


def test_record_ids_are_read_by_nobody() -> None:
    """A claim that names its records costs no call."""
    said = conversation()
    check(said, [{"text": "so", "record": "o3"}], record=False)
    assert said.read_texts == []


def test_a_model_that_does_not_answer_in_time_leaves_the_check_pending() -> None:
    """Without recording, what is read too late is not asked for any more."""
    said = conversation()
    said.is_stuck = True
    _, answer = check(said, [{"text": "well"}], record=False, wait_ms=20)
    assert answer["outcome"] == "pending"


def test_many_claims_on_a_large_state_are_checked_on_a_copy() -> None:
    """The answer is the same as of one claim after the other."""
    said = FakeConversations()
    for turn in range(4):
        said.say(statement(f"u{turn}", *(observe(f"o{turn}-{each}") for each in range(200))))
    claims = [{"record": f"o0-{each}"} for each in range(50)]
    _, answer = check(said, claims, record=False)
    assert [each["outcome"] for each in answer["verdicts"]] == ["grounded"] * 50


def test_a_conversation_of_which_nothing_is_folded_is_unknown() -> None:
    """A check does not begin a conversation, recorded or not."""
    said = FakeConversations()
    for record in (True, False):
        status, problem = check(said, [{"record": "o1"}], record=record)
        assert (status, problem["type"]) == (404, "urn:standfast:problem:no-conversation")
    assert said.appended == []
