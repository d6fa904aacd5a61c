"""From outcomes to derived events: what the topics and the command line show.

Every id is a hash of (tenant, conversation, sequence, kind, index), so emitting again is harmless.
What answers a query has its question in place of the index.
The order is fixed: the turn, its impacts in the order of application, verdicts and then alerts of
decisions by id; for a candidate its verdicts by claim, then its alerts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypedDict

from processor.engine.conversation import Conversation
from processor.engine.impact import Impact
from processor.engine.messages import candidate_message, decision_message, impact_message
from processor.engine.room import Room
from processor.engine.turn import TurnOutcome
from processor.engine.verify import Verdict, verify_fallen
from schemas.derived import (
    CandidateRef,
    DerivedEvent,
    Grade,
    Outcome,
    RetractionImpact,
    Severity,
    TurnEvent,
    UngroundedAlert,
    VerdictEvent,
    VerdictReason,
)
from schemas.log import CandidateAppended, InterpretationFailed, OperationsAppended
from schemas.utterance import CandidateClaim
from schemas.wire import canonical_content


class Envelope(TypedDict):
    """The fields that every derived event carries."""

    tenant_id: str
    conversation_id: str
    turn: int
    sequence: int
    event_id: str


def envelope(conversation: Conversation, kind: str, which: int | Sequence[str]) -> Envelope:
    """The common fields of an event of this kind.

    `which` tells it from others of its kind at this place of the log: its index among those that
    the last log event gave, or the question it answers.
    """
    key = [
        conversation.tenant_id,
        conversation.conversation_id,
        conversation.sequence,
        kind,
        which,
    ]
    return {
        "tenant_id": conversation.tenant_id,
        "conversation_id": conversation.conversation_id,
        "turn": conversation.turn,
        "sequence": conversation.sequence,
        "event_id": hashlib.sha256(canonical_content(key)).hexdigest(),
    }


def derive_turn(
    conversation: Conversation, event: OperationsAppended, outcome: TurnOutcome
) -> tuple[DerivedEvent, ...]:
    """The derived events of the statement that was folded last."""
    turn = TurnEvent(
        **envelope(conversation, TurnEvent.TYPE, 0),
        utterance_id=event.utterance.id,
        applied=outcome.applied,
        rejections=outcome.rejections,
        ungrounded=outcome.ungrounded,
        failed=None,
        notes=outcome.notes,
        digest=conversation.digest,
        state_digest=conversation.state_digest(),
    )
    if not outcome.impacts and not outcome.decisions:
        return (turn,)
    verdicts = verify_fallen(conversation.state, outcome.decisions)
    room = Room()
    return (
        turn,
        *(
            _impact(conversation, index, impact, room)
            for index, impact in enumerate(outcome.impacts)
        ),
        *(
            _verdict(conversation, index, verdict, room, record=id_)
            for index, (id_, verdict) in enumerate(verdicts.items())
        ),
        *(
            _decision_alert(conversation, index, id_, verdicts[id_])
            for index, id_ in enumerate(outcome.alerts)
        ),
    )


def derive_failed_turn(conversation: Conversation, event: InterpretationFailed) -> TurnEvent:
    """The turn event of a statement that could not be interpreted."""
    return TurnEvent(
        **envelope(conversation, TurnEvent.TYPE, 0),
        utterance_id=event.utterance.id,
        applied=(),
        rejections=(),
        ungrounded=(),
        failed=event.reason,
        notes=(),
        digest=conversation.digest,
        state_digest=conversation.state_digest(),
    )


def derive_candidate(
    conversation: Conversation, event: CandidateAppended, verdicts: tuple[Verdict, ...]
) -> tuple[DerivedEvent, ...]:
    """One verdict per claim, or one for the whole candidate if it makes none, then the alerts."""
    checked = _checked(event.utterance.id, event.claims, verdicts)
    refused = [each for each in checked if each[1].outcome is Outcome.UNGROUNDED]
    room = Room()
    return (
        *(
            _verdict(conversation, index, verdict, room, candidate=reference)
            for index, (reference, verdict) in enumerate(checked)
        ),
        *(
            _alert(conversation, index, verdict, candidate_message(reference, verdict), reference)
            for index, (reference, verdict) in enumerate(refused)
        ),
    )


def answer_candidate(
    conversation: Conversation,
    utterance_id: str,
    claims: Sequence[CandidateClaim] | None,
    verdicts: tuple[Verdict, ...],
) -> tuple[VerdictEvent, ...]:
    """The verdicts on a draft that is not in the log, as the answer to a query.

    Their ids are made from the question and from the state that was asked.
    """
    room = Room()
    return tuple(
        _verdict(
            conversation,
            (conversation.digest, utterance_id, str(index)),
            verdict,
            room,
            candidate=reference,
        )
        for index, (reference, verdict) in enumerate(_checked(utterance_id, claims, verdicts))
    )


def _checked(
    utterance_id: str, claims: Sequence[CandidateClaim] | None, verdicts: tuple[Verdict, ...]
) -> list[tuple[CandidateRef, Verdict]]:
    """Each claim and its verdict; of a candidate without claims, one verdict for all of it."""
    if not claims:
        verdict = Verdict(
            Outcome.UNVERIFIED if claims is None else Outcome.NO_CLAIMS,
            None,
            reason=VerdictReason.NO_CLAIMS_GIVEN if claims is None else None,
        )
        return [(CandidateRef(utterance_id=utterance_id, claim_index=None), verdict)]
    references = [
        CandidateRef(
            utterance_id=utterance_id,
            claim_index=index,
            text=claim.text,
            records=claim.associated(),
        )
        for index, claim in enumerate(claims)
    ]
    return list(zip(references, verdicts, strict=True))


def answer_verdict(conversation: Conversation, record: str, verdict: Verdict) -> VerdictEvent:
    """A verdict on a record as the answer to a query: it belongs to no event of the log.

    So its id is made from the question and from the state that was asked.
    """
    return _verdict(conversation, (conversation.digest, record), verdict, Room(), record=record)


def _verdict(
    conversation: Conversation,
    which: int | Sequence[str],
    verdict: Verdict,
    room: Room,
    candidate: CandidateRef | None = None,
    record: str | None = None,
) -> VerdictEvent:
    room.begin()
    support, failures = room.ids(verdict.support), room.failures(verdict.failures)
    return VerdictEvent(
        **envelope(conversation, VerdictEvent.TYPE, which),
        candidate=candidate,
        record=record,
        outcome=verdict.outcome,
        grade=verdict.grade,
        support=support,
        failures=failures.listed,
        support_complete=verdict.support_complete and len(support) == len(verdict.support),
        failures_complete=failures.complete,
        reason=verdict.reason,
        disputed=room.ids(verdict.disputed),
        coverage=conversation.coverage(),
        digest=conversation.digest,
    )


def _impact(conversation: Conversation, index: int, impact: Impact, room: Room) -> RetractionImpact:
    room.begin()
    told, complete = room.all_of(
        [
            impact.decisions,
            impact.direct,
            impact.in_good_standing,
            impact.newly_ungrounded,
            impact.transitive,
        ]
    )
    decisions, direct, in_good_standing, newly_ungrounded, transitive = told
    return RetractionImpact(
        **envelope(conversation, RetractionImpact.TYPE, index),
        withdrawn=impact.withdrawn,
        standing=impact.standing,
        cause=impact.op,
        by=impact.by,
        direct=direct,
        transitive=transitive,
        in_good_standing=in_good_standing,
        newly_ungrounded=newly_ungrounded,
        decisions=decisions,
        complete=complete,
        message=impact_message(impact),
    )


def _decision_alert(
    conversation: Conversation, index: int, id_: str, verdict: Verdict
) -> UngroundedAlert:
    record = conversation.state.records[id_]
    return _alert(conversation, index, verdict, decision_message(record, verdict), record=id_)


def _alert(
    conversation: Conversation,
    index: int,
    verdict: Verdict,
    message: str,
    candidate: CandidateRef | None = None,
    record: str | None = None,
) -> UngroundedAlert:
    assert verdict.reason is not None
    mild = verdict.grade is Grade.CORROBORATION_LOST
    return UngroundedAlert(
        **envelope(conversation, UngroundedAlert.TYPE, index),
        record=record,
        candidate=candidate,
        severity=Severity.WARNING if mild else Severity.CRITICAL,
        reason=verdict.reason,
        message=message,
    )
