"""From utterances with gold operations to folded conversations, without a pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, get_args

from processor.app.interpret import interpret
from processor.engine.conversation import Conversation
from processor.evidence.fold import Folded, fold
from schemas.derived import DerivedEvent, TurnEvent
from schemas.log import LogEvent
from schemas.utterance import Utterance

_LOG_EVENTS = get_args(get_args(LogEvent)[0])


class Said(NamedTuple):
    """One utterance, the conversation as it is after it, and what it emitted."""

    utterance: Utterance
    conversation: Conversation
    events: tuple[DerivedEvent, ...]


def fold_utterances(utterances: Iterable[Utterance]) -> Iterator[Said]:
    """Fold the utterances of one conversation one by one."""
    conversation: Conversation | None = None
    for utterance in utterances:
        if conversation is None:
            conversation = Conversation.empty(utterance.tenant_id, utterance.conversation_id)
        event = interpret(conversation, utterance)
        assert isinstance(event, _LOG_EVENTS), event
        folded = fold(conversation, event)
        assert isinstance(folded, Folded), folded
        yield Said(utterance, conversation, folded.events)


def fold_all(utterances: Iterable[Utterance]) -> Conversation:
    """One conversation after all its utterances, none of whose operations is refused."""
    last: Conversation | None = None
    for said in fold_utterances(utterances):
        for event in said.events:
            if isinstance(event, TurnEvent):
                assert event.rejections == (), said.utterance.utterance_id
        last = said.conversation
    assert last is not None, "no utterances"
    return last
