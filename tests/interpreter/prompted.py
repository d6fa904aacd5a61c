"""The prompts that the golden files hold; `python -m tests.interpreter.prompted` writes them anew.

Write them anew only with a new version of the wording, or for a change in how the state is shown
that is meant: what they show is what models are sent.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from processor.engine.authority import authority
from processor.engine.conversation import Conversation
from processor.engine.rules_version import CURRENT_RULES
from processor.engine.turn import dry_run
from processor.interpreter.port import Reading, Refused
from processor.interpreter.prompt import Prompt
from processor.interpreter.prompts import Condition, StandardPrompts
from processor.render.situation import render_situation
from processor.scenarios import utterances
from schemas.log import Interpretation
from schemas.utterance import Utterance
from tests.interpreter.long_conversation import fold_in, long_conversation

GOLDEN = Path(__file__).parent / "golden"
_MODEL = Interpretation(interpreter="scripted")


def standard(condition: Condition, budget_tokens: int = 8_000) -> StandardPrompts:
    """The prompts as they are sent."""
    return StandardPrompts(condition, budget_tokens, render_situation)


def scenario_before(name: str, utterance_id: str) -> tuple[Conversation, Utterance]:
    """A scenario as it is before one of its utterances, and that."""
    first, *_ = utterances(name)
    conversation = Conversation.empty(first.tenant_id, first.conversation_id)
    for utterance in utterances(name):
        if utterance.utterance_id == utterance_id:
            return conversation, utterance
        fold_in(conversation, utterance)
    raise AssertionError(f"{name} has no {utterance_id}")


def refused_reading(conversation: Conversation, utterance: Utterance) -> Refused:
    """The utterance's own operations, as if said once before: all that was new is taken."""
    assert utterance.operations is not None
    operations = utterance.operations
    fold_in(conversation, utterance.model_copy(update={"utterance_id": "before"}))
    outcome = dry_run(
        conversation.state,
        conversation.turn + 1,
        utterance.speaker,
        None,
        operations,
        authority(conversation.state, CURRENT_RULES, utterance.role, None),
    )
    return Refused(Reading(_MODEL, operations), outcome.rejections)


@cache
def golden_prompts() -> dict[str, Prompt]:
    """Each prompt by the name of its file."""
    prompts: dict[str, Prompt] = {}
    for condition in Condition:
        conversation, utterance = scenario_before("incident", "u12")
        prompts[condition] = standard(condition).statement(conversation, utterance, None)
    augmented = standard(Condition.STATE_AUGMENTED)
    conversation, utterance = scenario_before("incident-with-candidates", "c14a")
    prompts["candidate"] = augmented.candidate(conversation, utterance)
    conversation, utterance = scenario_before("deliberation", "u07")
    refused = refused_reading(conversation, utterance)
    prompts["refused"] = augmented.statement(conversation, utterance, refused)
    for name, utterance_id in (("values", "v5"), ("values_in_conflict", "v6")):
        conversation, utterance = scenario_before("values", utterance_id)
        prompts[name] = (
            augmented.candidate(conversation, utterance)
            if utterance.kind == "candidate"
            else augmented.statement(conversation, utterance, None)
        )
    *_, (conversation, utterance) = long_conversation(300)
    small = standard(Condition.STATE_AUGMENTED, 3_200)
    prompts["small_budget"] = small.statement(conversation, utterance, None)
    return prompts


def written(prompt: Prompt) -> str:
    """A prompt as its file has it."""
    parts = [f"{prompt.id}\n{prompt.hash}\n"]
    parts += [f"===== {message.role}\n{message.content}" for message in prompt.messages]
    return "\n".join(parts)


if __name__ == "__main__":
    for file_name, golden in golden_prompts().items():
        (GOLDEN / f"{file_name}.txt").write_text(written(golden), encoding="utf-8")
