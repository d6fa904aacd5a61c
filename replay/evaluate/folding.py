"""Utterances to a conversation without a pipeline: by their own operations or an interpreter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from hashlib import sha256
from typing import Any, NamedTuple, final

from processor.engine.conversation import Conversation
from processor.engine.rules_version import CURRENT_RULES
from processor.evidence.fold import Refused as LogRefused
from processor.evidence.fold import advance
from processor.interpreter.native import NATIVE, parse_formulas
from processor.interpreter.port import Interpreted, Interpreter, Reading
from replay.evaluate.benchmark import BenchmarkError, Scores
from schemas.log import (
    ConversationSetUp,
    Interpretation,
    InterpretationFailed,
    LogEvent,
    OperationsAppended,
    UtteranceRef,
)
from schemas.operations import Operation
from schemas.utterance import Utterance, UtteranceKind
from schemas.wire import canonical_content


@final
class Read(NamedTuple):
    """A conversation that an interpreter read from text, and what that cost."""

    conversation: Conversation
    cost: Scores


def fold_native(utterances: Iterable[Utterance]) -> Conversation:
    """One conversation after all its utterances. Raises BenchmarkError if one is refused."""
    conversation: Conversation | None = None
    for utterance in utterances:
        if conversation is None:
            conversation = Conversation.empty(utterance.tenant_id, utterance.conversation_id)
        fold_one(conversation, utterance)
    if conversation is None:
        raise BenchmarkError("there are no utterances")
    return conversation


def fold_one(conversation: Conversation, utterance: Utterance) -> None:
    """Fold an utterance by its own operations. Raises BenchmarkError if one is refused."""
    if utterance.kind is UtteranceKind.CANDIDATE:
        return
    operations = utterance.operations or ()
    _take(conversation, _event(conversation, utterance, operations, NATIVE), whole=True)


async def fold_read(interpreter: Interpreter, utterances: Iterable[Utterance]) -> Read:
    """One conversation after all its utterances, as an interpreter reads them.

    Raises EndpointUnavailable and BenchmarkError.
    """
    turns = [read async for read in read_turns(interpreter, utterances)]
    if not turns:
        raise BenchmarkError("there are no utterances")
    return turns[-1]


async def read_turns(
    interpreter: Interpreter, utterances: Iterable[Utterance]
) -> AsyncIterator[Read]:
    """The conversation after each utterance, with operations read from the text alone.

    What the state refuses is left out, as in a run; a turn that cannot be read is a missing turn.
    Raises EndpointUnavailable and BenchmarkError.
    """
    conversation: Conversation | None = None
    cost = {"ingest_tokens": 0.0, "unreadable_turns": 0.0}
    for utterance in utterances:
        if conversation is None:
            conversation = Conversation.empty(utterance.tenant_id, utterance.conversation_id)
        if utterance.kind is UtteranceKind.STATEMENT:
            in_words = utterance.model_copy(update={"operations": None})
            answer = await interpreter.interpret(conversation, in_words, None)
            cost["ingest_tokens"] += answer.provenance.tokens_in + answer.provenance.tokens_out
            cost["unreadable_turns"] += not isinstance(answer, Reading)
            _take(conversation, _read_event(conversation, in_words, answer), whole=False)
        else:
            fold_one(conversation, utterance)
        yield Read(conversation, cost)


def _read_event(conversation: Conversation, utterance: Utterance, answer: Interpreted) -> LogEvent:
    if isinstance(answer, Reading):
        return _event(conversation, utterance, answer.operations, answer.provenance)
    return InterpretationFailed(
        type="standfast.interpretation_failed.v1",
        reason=answer.reason,
        turn=conversation.turn + 1,
        **_common(conversation, utterance, answer.provenance),
    )


def _take(conversation: Conversation, event: LogEvent, whole: bool) -> None:
    advanced = advance(conversation, event)
    if isinstance(advanced, LogRefused):
        raise BenchmarkError(f"{event.utterance.id}: the log refuses it: {advanced}")
    if whole and advanced.outcome is not None and advanced.outcome.rejections:
        raise BenchmarkError(f"{event.utterance.id}: {advanced.outcome.rejections[0].reason}")


def _event(
    conversation: Conversation,
    utterance: Utterance,
    operations: tuple[Operation, ...],
    provenance: Interpretation,
) -> LogEvent:
    common = _common(conversation, utterance, provenance)
    if utterance.kind is UtteranceKind.SETUP:
        return ConversationSetUp(type="standfast.setup.v1", setup=utterance.setup_body(), **common)
    return OperationsAppended(
        type="standfast.operations.v1",
        turn=conversation.turn + 1,
        operations=parse_formulas(operations),
        **common,
    )


def _common(
    conversation: Conversation, utterance: Utterance, provenance: Interpretation
) -> dict[str, Any]:
    digest = sha256(canonical_content(utterance)).hexdigest()
    audience = utterance.audience
    return {
        "tenant_id": utterance.tenant_id,
        "conversation_id": utterance.conversation_id,
        "sequence": conversation.sequence + 1,
        "rules_version": CURRENT_RULES,
        "utterance": UtteranceRef(id=utterance.utterance_id, digest=digest),
        "speaker": utterance.speaker,
        "role": utterance.role,
        "at": utterance.at,
        "audience": None if audience is None else tuple(sorted({*audience, utterance.speaker})),
        "provenance": provenance,
    }
