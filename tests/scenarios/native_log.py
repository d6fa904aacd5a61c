"""From utterances with gold operations to folded conversations, without a pipeline."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from processor.engine.conversation import Conversation
from processor.engine.fold import Folded, fold
from processor.engine.rules_version import CURRENT_RULES
from schemas.derived import DerivedEvent
from schemas.log import (
    CandidateAppended,
    ConversationSetUp,
    Interpretation,
    LogEvent,
    OperationsAppended,
    UtteranceRef,
)
from schemas.utterance import Utterance, UtteranceKind
from schemas.wire import canonical_bytes

_NATIVE = Interpretation(interpreter="native")


def log_event(conversation: Conversation, utterance: Utterance) -> LogEvent:
    """The event that a native utterance appends to the log of this conversation."""
    common = {
        "tenant_id": utterance.tenant_id,
        "conversation_id": utterance.conversation_id,
        "sequence": conversation.sequence + 1,
        "rules_version": CURRENT_RULES,
        "utterance": UtteranceRef(
            id=utterance.utterance_id,
            digest=hashlib.sha256(canonical_bytes(utterance)).hexdigest(),
        ),
        "speaker": utterance.speaker,
        "role": utterance.role,
        "at": utterance.at,
        "audience": utterance.audience,
        "provenance": _NATIVE,
    }
    match utterance.kind:
        case UtteranceKind.SETUP:
            return ConversationSetUp(
                type="standfast.setup.v1", setup=utterance.setup_body(), **common
            )
        case UtteranceKind.CANDIDATE:
            return CandidateAppended(
                type="standfast.candidate.v1", claims=utterance.claims, **common
            )
        case UtteranceKind.STATEMENT:
            assert utterance.operations is not None
            return OperationsAppended(
                type="standfast.operations.v1",
                turn=conversation.turn + 1,
                operations=utterance.operations,
                **common,
            )


def fold_utterances(
    utterances: Iterable[Utterance],
) -> Iterator[tuple[Utterance, Conversation, tuple[DerivedEvent, ...]]]:
    """Fold the utterances of one conversation; yields the conversation as it is after each."""
    conversation: Conversation | None = None
    for utterance in utterances:
        if conversation is None:
            conversation = Conversation.empty(utterance.tenant_id, utterance.conversation_id)
        folded = fold(conversation, log_event(conversation, utterance))
        assert isinstance(folded, Folded), f"{utterance.utterance_id}: {folded}"
        yield utterance, conversation, folded.events


def fold_all(utterances: Iterable[Utterance]) -> Conversation:
    """One conversation after all its utterances, none of whose operations is refused."""
    last: Conversation | None = None
    for utterance, conversation, events in fold_utterances(utterances):
        rejections = [r for event in events for r in getattr(event, "rejections", ())]
        assert not rejections, f"{utterance.utterance_id}: {rejections}"
        last = conversation
    assert last is not None, "no utterances"
    return last
