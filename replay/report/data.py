"""What the page of a conversation shows, as JSON values: the same log gives the same bytes.

The page knows every turn at once, so a record comes with its versions (`versions.py`) and dated
links; what stood at a turn, and what would fall with a record, is looked up in the page, by the
definitions of the engine. The texts of utterances are no part of the log, and so none of the page.
"""

from __future__ import annotations

from typing import Any, assert_never, final

from processor.engine.conversation import Conversation
from processor.engine.messages import failure_message
from processor.engine.plausibility.syntax import to_text
from processor.engine.record import Happening, Record
from processor.engine.state import Problem
from processor.evidence.fold import Folded
from replay.report.versions import Version, all_versions, dated_links
from replay.report.words import operation_words
from schemas.derived import (
    ContextUpdate,
    DerivedEvent,
    RetractionImpact,
    TurnEvent,
    UngroundedAlert,
    VerdictEvent,
)
from schemas.log import (
    CandidateAppended,
    ConversationErased,
    ConversationSetUp,
    InterpretationFailed,
    LogEvent,
    OperationsAppended,
)
from schemas.wire import canonical_bytes

Json = dict[str, Any]

DATA_FORMAT = 1
FAILURES_TOLD_MAX = 5
"""Of a verdict; the page finds the others itself."""


@final
class ReportData:
    """Collects what the page shows while the log of one conversation is folded."""

    def __init__(self) -> None:
        self._events: list[Json] = []
        self._answers: dict[str, list[tuple[str, int]]] = {}

    def take(self, conversation: Conversation, event: LogEvent, folded: Folded) -> None:
        """Note an event that was just folded, and what came of it."""
        told: Json = {
            "turn": conversation.turn,
            "sequence": event.sequence,
            "kind": _kind(event),
            "utterance": event.utterance.id,
            "speaker": event.speaker,
            "at": event.at,
        }
        if isinstance(event, OperationsAppended):
            told["operations"] = [operation_words(each) for each in event.operations]
            if event.fills_turn is not None:
                told["fills"] = event.fills_turn
            self._note_answers(conversation, event)
        for derived in folded.events:
            _tell(told, derived)
        self._events.append(told)

    def value(self, conversation: Conversation) -> Json:
        """Everything, once the conversation is folded as far as it goes."""
        state = conversation.state
        records = list(all_versions(state))
        return {
            "format": DATA_FORMAT,
            "tenant": conversation.tenant_id,
            "conversation": conversation.conversation_id,
            "turns": conversation.turn,
            "sequence": conversation.sequence,
            "digest": conversation.digest,
            "state_digest": conversation.state_digest(),
            "erased": conversation.is_erased,
            "agents": [{"id": id_, "role": role} for id_, role in state.roles.items()],
            "records": [_record(record, versions) for record, versions in records],
            "problems": [self._problem(each) for each in state.problems.values()],
            "events": self._events,
        }

    def _note_answers(self, conversation: Conversation, event: OperationsAppended) -> None:
        """Since when a record answers a problem: nothing else says it."""
        named = {name: None for each in event.operations for name in _may_answer(each)}
        for name in named:
            problem = conversation.state.problems.get(name)
            if problem is not None:
                known = self._answers.setdefault(name, [])
                known += [(id_, event.turn) for id_ in problem.answers[len(known) :]]

    def _problem(self, problem: Problem) -> Json:
        return {
            "id": problem.id,
            "text": problem.text,
            "question": problem.is_question,
            "speaker": problem.speaker,
            "turn": problem.turn,
            "about": problem.about,
            "answers": self._answers.get(problem.id, []),
        }


def report_bytes(value: Json) -> bytes:
    """The data as canonical JSON."""
    return canonical_bytes(value)


def _may_answer(operation: object) -> tuple[str, ...]:
    return (*getattr(operation, "explains", ()), *getattr(operation, "answers", ()))


def _record(record: Record, versions: list[Version]) -> Json:
    """`attacks` are the records that attack this one, with their turns."""
    told: Json = {
        "id": record.id,
        "kind": record.kind,
        "claim": record.claim,
        "speaker": record.speaker,
        "turn": record.turn,
        "op": record.op,
        "versions": [list(version) for version in versions],
        "links": [[link.support.position, link.kind, link.turn] for link in dated_links(record)],
        "attacks": [[entry.by, entry.turn] for entry in record.happened(Happening.ATTACKED)],
        "trail": [
            [entry.turn, entry.happening, entry.op, entry.by, entry.speaker, entry.value]
            for entry in record.trail
        ],
    }
    if record.formula is not None:
        told["formula"] = to_text(record.formula)
    return told


def _kind(event: LogEvent) -> str:
    match event:
        case OperationsAppended():
            return "statement"
        case InterpretationFailed():
            return "failed"
        case CandidateAppended():
            return "draft"
        case ConversationSetUp():
            return "setup"
        case ConversationErased():
            return "erased"
        case _:
            assert_never(event)


def _tell(told: Json, event: DerivedEvent) -> None:
    match event:
        case TurnEvent():
            told["refused"] = [[each.index, each.code, each.reason] for each in event.rejections]
            told["notes"] = [note.text for note in event.notes]
            told["ungrounded"] = event.ungrounded
            if event.failed is not None:
                told["failed"] = event.failed
        case VerdictEvent():
            told.setdefault("verdicts", []).append(_verdict(event))
        case RetractionImpact():
            told.setdefault("impacts", []).append(
                {"withdrawn": event.withdrawn, "message": event.message}
            )
        case UngroundedAlert():
            told.setdefault("alerts", []).append(_alert(event))
        case ContextUpdate():
            pass
        case _:
            assert_never(event)


def _verdict(event: VerdictEvent) -> Json:
    candidate = event.candidate
    return {
        "index": None if candidate is None else candidate.claim_index,
        "claim": None if candidate is None else candidate.text,
        "records": [event.record] if candidate is None else candidate.records,
        "outcome": event.outcome,
        "grade": event.grade,
        "reason": event.reason,
        "complete": event.coverage.complete,
        "failures": [failure_message(each) for each in event.failures[:FAILURES_TOLD_MAX]],
    }


def _alert(event: UngroundedAlert) -> Json:
    return {
        "record": event.record,
        "index": None if event.candidate is None else event.candidate.claim_index,
        "severity": event.severity,
        "message": event.message,
    }
