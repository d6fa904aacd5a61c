"""The one line that the log of a worker has for each event it worked on.

Everything somebody would look for is in it, and what was said only if the site asks for that.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, assert_never

from processor.app.messages import Delivered
from processor.app.reduce_agent import Folded
from schemas.derived import TurnEvent, UngroundedAlert, VerdictEvent
from schemas.log import (
    CandidateAppended,
    ConversationErased,
    ConversationSetUp,
    InterpretationFailed,
    LogEvent,
    OperationsAppended,
)


def turn_line(folded: Folded, message: Delivered, seconds: float | None) -> dict[str, Any]:
    """The fields of the line; `seconds` is how long the utterance has been in hand, if it was."""
    event = folded.event
    line: dict[str, Any] = {
        "tenant": event.tenant_id,
        "conversation": event.conversation_id,
        "sequence": event.sequence,
        "utterance": event.utterance.id,
        "partition": message.partition,
        "offset": message.offset,
        "outcome": _outcome(event),
        "milliseconds": None if seconds is None else round(seconds * 1_000, 1),
    }
    if folded.is_again:
        line["again"] = True
    verdicts: Counter[str] = Counter()
    alerts = 0
    for derived in folded.derived:
        match derived:
            case TurnEvent():
                line["turn"] = derived.turn
                line["rejections"] = len(derived.rejections)
                line["ungrounded"] = len(derived.ungrounded)
            case VerdictEvent():
                verdicts[derived.outcome.value] += 1
            case UngroundedAlert():
                alerts += 1
    if verdicts:
        line["verdicts"] = dict(verdicts)
    if alerts:
        line["alerts"] = alerts
    told = event.provenance
    if told.attempts:
        line |= {"attempts": told.attempts, "tokens_in": told.tokens_in}
        line["tokens_out"] = told.tokens_out
    return line


def _outcome(event: LogEvent) -> str:
    match event:
        case OperationsAppended():
            return "interpreted"
        case InterpretationFailed():
            return "not_interpreted"
        case CandidateAppended():
            return "checked"
        case ConversationSetUp():
            return "set_up"
        case ConversationErased():
            return "erased"
        case _:
            assert_never(event)


def said(event: LogEvent) -> list[str]:
    """The claims in the event, for sites that want them in the log."""
    match event:
        case OperationsAppended():
            written = (getattr(operation, "claim", None) for operation in event.operations)
            return [claim for claim in written if claim is not None]
        case CandidateAppended():
            return [claim.text for claim in event.claims or ()]
        case _:
            return []
