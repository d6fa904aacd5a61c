"""The reducer: folds a conversation's log, one event at a time, into state and derived events.

`advance` is the whole of what an event does; `fold` also says it in derived events. Both are told
what a turn implies beyond its operations; whoever folds a log calls them through
`processor.evidence.fold`, which knows that. An event that
does not fit (a gap or a repeat in the sequence, an utterance the conversation has already) is
refused, the same way by every reader, and leaves no trace, not even in the digest.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, assert_never, final

from processor.engine.authority import authority
from processor.engine.conversation import Conversation
from processor.engine.derive import derive_candidate, derive_failed_turn, derive_turn
from processor.engine.digest import chain
from processor.engine.errors import BrokenInvariantError
from processor.engine.implied import AtomSource, Implies
from processor.engine.rules_version import KNOWN_RULES, RULES_V2
from processor.engine.setup import run_setup
from processor.engine.transition import Change, Transition
from processor.engine.turn import TurnOutcome, run_turn
from processor.engine.verify import Verdict, verify_claims
from schemas.derived import DerivedEvent
from schemas.evidence import Supersession
from schemas.log import (
    CandidateAppended,
    ConversationErased,
    ConversationSetUp,
    InterpretationFailed,
    LogEvent,
    OperationsAppended,
)
from schemas.wire import canonical_content


class RefusalReason(StrEnum):
    """Why an event is not folded."""

    SEQUENCE_TAKEN = "sequence_taken"
    SEQUENCE_GAP = "sequence_gap"
    TURN_MISMATCH = "turn_mismatch"
    UTTERANCE_KNOWN = "utterance_known"
    WRONG_CONVERSATION = "wrong_conversation"
    UNKNOWN_RULES = "unknown_rules"
    NOT_AT_THE_START = "not_at_the_start"
    NOTHING_TO_FILL = "nothing_to_fill"
    ERASED = "erased"


@final
class Refused(NamedTuple):
    """An event that does not fit the conversation."""

    reason: RefusalReason


@final
class Advanced(NamedTuple):
    """The bare outcome of an event: what a turn did, or what each claim of a candidate got."""

    outcome: TurnOutcome | None = None
    verdicts: tuple[Verdict, ...] = ()


@final
class Folded(NamedTuple):
    """What an event brought about: the derived events in order, and the bare outcome."""

    events: tuple[DerivedEvent, ...]
    advanced: Advanced


def fold(
    conversation: Conversation, event: LogEvent, implies: Implies | None = None
) -> Folded | Refused:
    """Fold one event and derive what it brought about."""
    advanced = advance(conversation, event, implies)
    if isinstance(advanced, Refused):
        return advanced
    return Folded(derived(conversation, event, advanced), advanced)


def derived(
    conversation: Conversation, event: LogEvent, advanced: Advanced
) -> tuple[DerivedEvent, ...]:
    """The derived events of the event that was folded last, in order."""
    match event:
        case OperationsAppended():
            assert advanced.outcome is not None
            return derive_turn(conversation, event, advanced.outcome)
        case InterpretationFailed():
            return (derive_failed_turn(conversation, event),)
        case CandidateAppended():
            return derive_candidate(conversation, event, advanced.verdicts)
        case ConversationSetUp() | ConversationErased():
            return ()
        case _:
            assert_never(event)


def advance(
    conversation: Conversation, event: LogEvent, implies: Implies | None = None
) -> Advanced | Refused:
    """Fold one event without deriving anything from it: what recovery and replay need."""
    reason = refusal_reason(conversation, event)
    if reason is not None:
        return Refused(reason)
    if isinstance(event, ConversationErased):
        conversation.forget()
    advanced, change = _advance(conversation, event, implies)
    if event.policy is not None:
        conversation.state.tenant_policy = event.policy
    conversation.sequence = event.sequence
    conversation.utterances[event.utterance.id] = bytes.fromhex(event.utterance.digest)
    conversation.digest = chain(
        conversation.digest,
        [
            event.tenant_id,
            event.conversation_id,
            event.sequence,
            event.type,
            event.rules_version,
        ],
        _content(event),
        change,
    )
    return advanced


def refusal_reason(conversation: Conversation, event: LogEvent) -> RefusalReason | None:
    """Why the event does not fit the conversation, or None if it does."""
    if (
        event.conversation_id != conversation.conversation_id
        or event.tenant_id != conversation.tenant_id
    ):
        return RefusalReason.WRONG_CONVERSATION
    if conversation.is_erased:
        return RefusalReason.ERASED
    if isinstance(event, ConversationErased):  # it fits whatever was folded before
        return None if event.rules_version in KNOWN_RULES else RefusalReason.UNKNOWN_RULES
    if event.sequence != conversation.sequence + 1:
        is_taken = event.sequence <= conversation.sequence
        return RefusalReason.SEQUENCE_TAKEN if is_taken else RefusalReason.SEQUENCE_GAP
    if event.rules_version not in KNOWN_RULES:
        return RefusalReason.UNKNOWN_RULES
    match event:
        case OperationsAppended() | InterpretationFailed():
            if event.turn != conversation.turn + 1:
                return RefusalReason.TURN_MISMATCH
        case ConversationSetUp():
            if conversation.sequence > 0:
                return RefusalReason.NOT_AT_THE_START
        case CandidateAppended():
            pass
        case _:
            assert_never(event)
    if isinstance(event, OperationsAppended) and event.fills_turn is not None:
        fits = conversation.missing.get(event.fills_turn) == event.utterance.id
        return None if fits else RefusalReason.NOTHING_TO_FILL
    if event.utterance.id in conversation.utterances:
        return RefusalReason.UTTERANCE_KNOWN
    return None


def _advance(
    conversation: Conversation, event: LogEvent, implies: Implies | None
) -> tuple[Advanced, list[Change]]:
    state = conversation.state
    match event:
        case OperationsAppended():
            transition, outcome = run_turn(
                state,
                event.turn,
                event.speaker,
                event.audience,
                event.operations,
                authority(state, event.rules_version, event.role, event.policy),
                implies if event.rules_version >= RULES_V2 else None,
            )
            if transition.brings_atoms:
                if implies is None and event.rules_version >= RULES_V2:
                    transition.rollback()
                    raise BrokenInvariantError("nothing can tell what the atoms imply")
                conversation.atom_sources[event.turn] = atom_source(event)
            _keep(conversation, transition, event.turn)
            if event.fills_turn is not None:
                del conversation.missing[event.fills_turn]
            return Advanced(outcome), outcome.change
        case InterpretationFailed():
            conversation.turn = event.turn
            conversation.missing[event.turn] = event.utterance.id
            return Advanced(), []
        case CandidateAppended():
            claims = [claim.associated() for claim in event.claims or ()]
            return Advanced(verdicts=verify_claims(state, claims)), []
        case ConversationSetUp():
            transition = run_setup(state, event.setup, event.audience)
            _keep(conversation, transition, conversation.turn)
            return Advanced(), transition.change
        case ConversationErased():
            conversation.is_erased = True
            return Advanced(), []
        case _:
            assert_never(event)


def atom_source(event: OperationsAppended) -> AtomSource:
    """What the event says of the atoms it brings, beside the atoms."""
    return AtomSource(
        event.speaker,
        event.role,
        event.turn if event.fills_turn is None else event.fills_turn,
        event.supersession or Supersession.SAME_KEY_SAME_SOURCE,
    )


def _keep(conversation: Conversation, transition: Transition, turn: int) -> None:
    transition.commit()
    conversation.turn = turn
    conversation.digests.absorb(transition, turn)


def _content(event: LogEvent) -> bytes:
    """What was said, without how it was transported or interpreted."""
    said: list[object] = [
        event.utterance.id,
        event.speaker,
        event.role,
        event.at,
        event.audience,
    ]
    match event:
        case OperationsAppended():
            said += [event.fills_turn, event.operations]
            if event.supersession is not None:
                said.append(event.supersession)
        case InterpretationFailed():
            said.append(event.reason)
        case CandidateAppended():
            said.append(event.claims)
        case ConversationSetUp():
            said.append(event.setup)
        case ConversationErased():
            pass
        case _:
            assert_never(event)
    if event.policy is not None:
        said.append(event.policy)
    return canonical_content(said)
