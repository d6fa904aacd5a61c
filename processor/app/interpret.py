"""From an utterance to the event that is appended to its conversation's log.

Nothing here knows about a broker: the one-process run and the pipeline call the same function.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any, NamedTuple, assert_never, final

from processor.app.tenants import PLAIN, Tenants
from processor.engine.conversation import Conversation
from processor.engine.rules_version import CURRENT_RULES
from processor.interpreter.native import NATIVE, parse_formulas
from processor.interpreter.port import Interpreted, Reading, Unreadable
from schemas.contract import AGENTS_MAX, REASON_CHARS_MAX
from schemas.log import (
    CandidateAppended,
    ConversationSetUp,
    InterpretationFailed,
    LogEvent,
    OperationsAppended,
    UtteranceRef,
)
from schemas.operations import Operation
from schemas.utterance import CandidateClaim, Utterance, UtteranceKind
from schemas.wire import WireError, canonical_content

NO_OPERATIONS = "the utterance brings no operations and no model is configured to read its text"


class DeadLetterClass(StrEnum):
    """What kind of input could not be handled."""

    TOO_LONG = "too_long"
    INVALID = "invalid"
    ID_REUSED = "id_reused"
    SETUP_NOT_FIRST = "setup_not_first"
    WRONG_KEY = "wrong_key"
    WRONG_PARTITION = "wrong_partition"
    NOT_INTERPRETED = "not_interpreted"
    ERASED = "erased"
    """Of an erased conversation: the letter has nothing of what was said."""


@final
class AlreadyInLog(NamedTuple):
    """The conversation has this very utterance already."""

    utterance_id: str


@final
class Unusable(NamedTuple):
    """The utterance cannot be appended: `place` is the field, if one is to blame."""

    dead_letter_class: DeadLetterClass
    place: str
    problem: str


WAS_ERASED = Unusable(DeadLetterClass.ERASED, "", "the conversation was erased; its id is closed")


@final
class Source(NamedTuple):
    """Where the utterance stands in Kafka."""

    topic: str
    partition: int
    offset: int


def utterance_digest(utterance: Utterance) -> str:
    """What tells two utterances with the same id apart."""
    return hashlib.sha256(canonical_content(utterance)).hexdigest()


def needs_reading(utterance: Utterance) -> bool:
    """Whether only an interpreter can tell what the utterance says."""
    match utterance.kind:
        case UtteranceKind.STATEMENT:
            return utterance.operations is None
        case UtteranceKind.CANDIDATE:
            return utterance.claims is None or any(map(is_unassociated, utterance.claims))
        case UtteranceKind.SETUP:
            return False
        case _:
            assert_never(utterance.kind)


def is_unassociated(claim: CandidateClaim) -> bool:
    """Whether a claim has words, and nothing says on which records it rests."""
    return bool(claim.text) and not claim.associated()


def interpret(
    conversation: Conversation,
    utterance: Utterance,
    rules_version: int = CURRENT_RULES,
    reading: Interpreted | None = None,
    source: Source | None = None,
    fills_turn: int | None = None,
    tenants: Tenants = PLAIN,
) -> LogEvent | AlreadyInLog | Unusable:
    """The next log event of the conversation; the conversation itself is not changed.

    `reading` is what an interpreter made of an utterance that needs one. With `fills_turn`, the
    turn of this very utterance that is missing, a statement that can be read now fills its place.
    What is read out of a text is said by whoever said the text: it speaks for nobody else.
    """
    if conversation.is_erased:
        return WAS_ERASED
    digest = utterance_digest(utterance)
    known = conversation.utterances.get(utterance.utterance_id)
    if known is not None and known.hex() != digest:
        return _id_reused(utterance)
    if known is not None and (fills_turn is None or not isinstance(reading, Reading)):
        return AlreadyInLog(utterance.utterance_id)
    said = utterance.operations
    if isinstance(reading, Reading) and needs_reading(utterance):
        said = _as_the_speaker(reading.operations)
    audience = _hearers(utterance, said)
    if audience is not None and len(audience) > AGENTS_MAX:
        return _too_many_hear(len(audience))
    common: dict[str, Any] = {
        "tenant_id": utterance.tenant_id,
        "conversation_id": utterance.conversation_id,
        "sequence": conversation.sequence + 1,
        "rules_version": rules_version,
        "utterance": UtteranceRef(
            id=utterance.utterance_id, digest=digest, **({} if source is None else source._asdict())
        ),
        "speaker": utterance.speaker,
        "role": utterance.role,
        "at": utterance.at,
        "audience": audience,
        "provenance": NATIVE if reading is None else reading.provenance,
    }
    event = _event(conversation, utterance, said, reading, common, fills_turn)
    return event if isinstance(event, Unusable) else tenants.stamped(conversation, event)


def _id_reused(utterance: Utterance) -> Unusable:
    problem = f"{utterance.utterance_id!r} was used before for another utterance"
    return Unusable(DeadLetterClass.ID_REUSED, "utterance_id", problem)


def _too_many_hear(count: int) -> Unusable:
    problem = f"{count} agents hear this, speakers included; at most {AGENTS_MAX} may"
    return Unusable(DeadLetterClass.INVALID, "audience", problem)


def _as_the_speaker(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    return tuple(
        operation if operation.speaker is None else operation.model_copy(update={"speaker": None})
        for operation in operations
    )


def turn_to_fill(conversation: Conversation, utterance: Utterance) -> int | None:
    """The turn of this very utterance, if it could not be interpreted and is missing still."""
    known = conversation.utterances.get(utterance.utterance_id)
    if known is None or known.hex() != utterance_digest(utterance):
        return None
    missing = conversation.missing.items()
    return next((turn for turn, id_ in missing if id_ == utterance.utterance_id), None)


def _event(
    conversation: Conversation,
    utterance: Utterance,
    said: tuple[Operation, ...] | None,
    reading: Interpreted | None,
    common: dict[str, Any],
    fills_turn: int | None,
) -> LogEvent | Unusable:
    match utterance.kind:
        case UtteranceKind.STATEMENT:
            if said is None or isinstance(reading, Unreadable):
                reason = reading.reason if isinstance(reading, Unreadable) else NO_OPERATIONS
                return _failed(conversation, reason, common)
            return _statement(conversation, said, common, fills_turn)
        case UtteranceKind.CANDIDATE:
            claims = utterance.claims
            if isinstance(reading, Reading) and needs_reading(utterance):
                claims = reading.claims
            return CandidateAppended(type="standfast.candidate.v1", claims=claims, **common)
        case UtteranceKind.SETUP:
            if conversation.sequence > 0:
                return Unusable(
                    DeadLetterClass.SETUP_NOT_FIRST, "kind", "a setup must open its conversation"
                )
            return ConversationSetUp(
                type="standfast.setup.v1", setup=utterance.setup_body(), **common
            )


def _failed(conversation: Conversation, reason: str, common: dict[str, Any]) -> LogEvent:
    return InterpretationFailed(
        type="standfast.interpretation_failed.v1",
        turn=conversation.turn + 1,
        reason=reason[:REASON_CHARS_MAX],
        **common,
    )


def _statement(
    conversation: Conversation,
    said: tuple[Operation, ...],
    common: dict[str, Any],
    fills_turn: int | None,
) -> LogEvent | Unusable:
    try:
        operations = parse_formulas(said)
    except WireError as invalid:
        return Unusable(DeadLetterClass.INVALID, invalid.place, invalid.problem)
    return OperationsAppended(
        type="standfast.operations.v1",
        turn=conversation.turn + 1,
        operations=operations,
        fills_turn=fills_turn,
        **common,
    )


def _hearers(utterance: Utterance, said: tuple[Operation, ...] | None) -> tuple[str, ...] | None:
    """The audience in ascending order; who speaks hears it too, whether named or not."""
    if utterance.audience is None:
        return None
    speakers = [operation.speaker for operation in said or ()]
    named = [speaker for speaker in speakers if speaker is not None]
    return tuple(sorted({*utterance.audience, utterance.speaker, *named}))
