"""What the derived events of one log event tell together is bounded; what is true is not."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from processor.app.interpret import interpret
from processor.engine import room
from processor.engine.conversation import Conversation
from processor.engine.retraction import affected_closure
from processor.render.reduce import reduce
from schemas.derived import Outcome, RetractionImpact, VerdictEvent
from schemas.wire import decode_utterance

HERE, TOGETHER = 40, 100


def say(conversation: Conversation, utterance_id: str, **said: Any) -> tuple[Any, ...]:
    """What comes of one more utterance."""
    line = {
        "conversation_id": "c",
        "utterance_id": utterance_id,
        "speaker": "ann",
        "text": "said",
        "at": "2026-03-01T02:31:00Z",
        **said,
    }
    event = interpret(conversation, decode_utterance(orjson.dumps(line)))
    assert not isinstance(event, tuple), event
    derived = reduce(conversation, event)
    assert isinstance(derived, tuple)
    return derived


def observe(record: str, *premises: str) -> dict[str, Any]:
    """An observation."""
    return {"op": "observe", "record": record, "claim": "c", "premises": premises}


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> Conversation:
    """Sixty records that rest on a root, and one that rests on all of them, with little room."""
    monkeypatch.setattr(room, "EVENT_IDS_MAX", HERE)
    monkeypatch.setattr(room, "TOGETHER_IDS_MAX", TOGETHER)
    conversation = Conversation.empty("default", "c")
    leaves = [f"r{n:02}" for n in range(60)]
    say(conversation, "u1", operations=[observe("root"), *(observe(x, "root") for x in leaves)])
    say(conversation, "u2", operations=[observe("top", *leaves)])
    return conversation


def test_many_claims_are_answered_and_tell_a_bounded_part(wide: Conversation) -> None:
    """Each outcome is right; none tells more than its topic takes, nor all together more."""
    claims = [{"text": "t", "record": "top"}] * 50
    verdicts = say(wide, "d1", kind="candidate", claims=claims)
    assert {each.outcome for each in verdicts} == {Outcome.GROUNDED}
    told = [len(each.support) for each in verdicts]
    assert told[0] == max(told) == HERE
    assert sum(told) == TOGETHER
    assert not any(each.support_complete for each in verdicts)


def test_an_impact_tells_a_bounded_part_and_the_state_all(wide: Conversation) -> None:
    """The lists are cut and it says so; a query on the state has everything."""
    derived = say(wide, "u3", operations=[{"op": "revise", "target": "root", "by": "r00"}])
    impact = next(each for each in derived if isinstance(each, RetractionImpact))
    lists = (impact.direct, impact.transitive, impact.in_good_standing, impact.newly_ungrounded)
    assert sum(map(len, (*lists, impact.decisions))) == HERE
    assert not impact.complete
    root = wide.state.records["root"]
    assert len(affected_closure(root)) == 61
    drafts = say(wide, "d2", kind="candidate", claims=[{"text": "t", "record": "top"}] * 30)
    verdicts = [each for each in drafts if isinstance(each, VerdictEvent)]
    assert {each.outcome for each in verdicts} == {Outcome.UNGROUNDED}
    (whole,), (short,) = verdicts[0].failures, verdicts[-1].failures
    assert (whole.path, whole.path_omitted) == (("top", "r00", "root"), 0)
    assert (short.path, short.path_omitted) == (("top", "root"), 1)


def test_what_fits_is_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a need nothing is cut."""
    conversation = Conversation.empty("default", "c")
    say(conversation, "u1", operations=[observe("a"), observe("b", "a")])
    (verdict,) = say(conversation, "d", kind="candidate", claims=[{"text": "t", "record": "b"}])
    assert (verdict.support, verdict.support_complete) == (("a", "b"), True)
