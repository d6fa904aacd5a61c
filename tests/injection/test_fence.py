"""In the prompts of every condition a hostile text is one JSON string, and stays one."""

from __future__ import annotations

import json

import pytest

from processor.interpreter.port import Reading, Refused
from processor.interpreter.prompt import MessageRole, Prompt
from processor.interpreter.prompts import Condition
from schemas.log import Interpretation, OperationsAppended, Rejection, RejectionCode
from schemas.utterance import Utterance
from schemas.wire import decode_utterance
from tests.injection.corpus import ATTACKED, CORPUS, Json, Plant
from tests.interpreter.prompted import standard

CONTROL = ("<", "[INST]", "[/INST]", "[SYSTEM]")
HARMLESS = "The pump hums."
each_case = pytest.mark.parametrize("case", CORPUS, ids=lambda case: case["name"])
each_condition = pytest.mark.parametrize("condition", Condition)


def utterance_of(case: Json, text: str) -> Utterance:
    """An utterance as the case makes it, with this text."""
    said = {
        "tenant_id": ATTACKED[0],
        "conversation_id": ATTACKED[1],
        "utterance_id": "attempt",
        "at": "2026-03-01T02:31:00Z",
        **{name: case[name] for name in ("speaker", "role")},
        "text": text,
    }
    return decode_utterance(json.dumps(said).encode())


def asked(prompt: Prompt) -> list[str]:
    """The lines of what differs between utterances; the wording must come alone and first."""
    system, user = prompt.messages
    assert (system.role, user.role) == (MessageRole.SYSTEM, MessageRole.USER)
    assert user.content.isascii() or all(line.isprintable() for line in user.content.split("\n"))
    return user.content.split("\n")


@each_case
@each_condition
def test_a_text_is_one_string_on_one_line(case: Json, condition: Condition) -> None:
    """The last line reads back as the text; no text changes what stands before it."""
    prompts = standard(condition)
    conversation = Plant(case["reply"]).attacked
    hostile = prompts.statement(conversation, utterance_of(case, case["text"]), None)
    harmless = prompts.statement(conversation, utterance_of(case, HARMLESS), None)
    assert hostile.messages[0] == harmless.messages[0]
    *before, said, end = asked(hostile)
    unchanged = asked(harmless)[:-2]
    assert (end, before) == ("", unchanged[len(unchanged) - len(before) :])
    assert len(before) in (len(unchanged), 2), "a text that takes the budget leaves no state"
    assert json.loads(said) == {name: case[name] for name in ("speaker", "role", "text")}
    assert not any(control in said for control in CONTROL)


@each_case
def test_a_draft_is_fenced_the_same_way(case: Json) -> None:
    """What reads drafts is told the hostile text as one string too."""
    prompts = standard(Condition.STATE_AUGMENTED)
    conversation = Plant(case["reply"]).attacked
    *before, said, _ = asked(prompts.candidate(conversation, utterance_of(case, case["text"])))
    assert before[-1] == "# Draft"
    assert json.loads(said)["text"] == case["text"]
    assert not any(control in said for control in CONTROL)


@each_case
def test_what_a_text_left_in_the_state_is_fenced_later(case: Json) -> None:
    """Claims that an obedient model took over, and reasons that name them, make no lines."""
    plant = Plant(case["reply"])
    known = standard(Condition.STATE_AUGMENTED)
    event = plant.attempt(case)
    reading = Reading(Interpretation(interpreter="obedient"))
    if isinstance(event, OperationsAppended):
        reading = reading._replace(operations=event.operations)
    rejection = Rejection(index=0, code=RejectionCode.NOT_AUTHORISED, reason=case["text"][:4_096])
    refused = Refused(reading, (rejection,))
    later = known.statement(plant.attacked, utterance_of(case, HARMLESS), refused)
    lines = asked(later)
    titles = [line for line in lines if line.startswith("#")]
    assert len(titles) == len(dict.fromkeys(titles))
    assert {"# Records", "# Utterance", "# Your last answer"} <= set(titles)
    ours = [line.replace(" <- ", " rests on ") for line in lines]
    assert not any(control in line for line in ours for control in CONTROL)
