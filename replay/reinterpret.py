"""Compares two histories of the same utterances: what two interpreters made of them.

A turn is labelled with the kinds of its operations, each once; F1 is taken over the labels of all
turns together. A turn that could not be read has no label. Nothing is asked of a model here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import duckdb

from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused
from processor.render.reduce import reduce
from replay.errors import StoreError
from replay.labels import Kinds, kinds, share
from replay.reading import ConversationReader
from schemas.derived import DerivedEvent, Outcome, VerdictEvent
from schemas.log import InterpretationFailed, LogEvent, OperationsAppended
from schemas.wire import canonical_content, decode_log_event


@final
@dataclass(frozen=True, slots=True)
class History:
    """A conversation's log, what came of each event, and the map at its end."""

    events: tuple[LogEvent, ...]
    derived: tuple[tuple[DerivedEvent, ...], ...]
    conversation: Conversation


@final
class ComparedTurn(NamedTuple):
    """A statement as both read it; null where one could not, or does not have it.

    `same_kinds` says that the labels are equal, `same_operations` that all they say is.
    """

    utterance_id: str
    left: Kinds | None
    right: Kinds | None
    same_kinds: bool
    same_operations: bool


@final
class ChangedVerdict(NamedTuple):
    """A claim of a draft, or a decision in a turn, whose outcomes differ (null: no verdict)."""

    utterance_id: str
    claim_index: int | None
    record: str | None
    left: Outcome | None
    right: Outcome | None


@final
class Comparison(NamedTuple):
    """Two histories beside each other; shares of nothing are 1.

    `record_jaccard` compares record ids, `claim_jaccard` what the records claim, in words.
    """

    turns: tuple[ComparedTurn, ...]
    f1: float
    exact_match: float
    record_jaccard: float
    claim_jaccard: float
    verdicts: tuple[ChangedVerdict, ...]

    def view(self) -> dict[str, Any]:
        """As a JSON value."""
        lists = {name: [each._asdict() for each in getattr(self, name)] for name in _LISTS}
        return {**self._asdict(), **lists}


_LISTS = ("turns", "verdicts")


def history_of(
    connection: duckdb.DuckDBPyConnection, path: Path, tenant_id: str, conversation_id: str
) -> History:
    """Fold a conversation of a store. Raises StoreError if it does not fold."""
    reader = ConversationReader(connection, path, tenant_id, conversation_id)
    conversation = Conversation.empty(tenant_id, conversation_id)
    events: list[LogEvent] = []
    derived: list[tuple[DerivedEvent, ...]] = []
    for stored in reader.events():
        event = decode_log_event(stored.event)
        came = reduce(conversation, event)
        if isinstance(came, Refused):
            raise StoreError(f"{path}: event {event.sequence} does not fold: {came.reason}")
        events.append(event)
        derived.append(came)
    return History(tuple(events), tuple(derived), conversation)


def compare_histories(left: History, right: History) -> Comparison:
    """Compare two histories of the same utterances, by the ids of these."""
    turns = tuple(_turns(left, right))
    common = sum(len({*(each.left or ())} & {*(each.right or ())}) for each in turns)
    labels = sum(len(each.left or ()) + len(each.right or ()) for each in turns)
    ours, theirs = left.conversation.state.records, right.conversation.state.records
    return Comparison(
        turns,
        f1=share(2 * common, labels),
        exact_match=share(sum(each.same_kinds for each in turns), len(turns)),
        record_jaccard=_jaccard([*ours], [*theirs]),
        claim_jaccard=_jaccard(
            [_words(record.claim) for record in ours.values()],
            [_words(record.claim) for record in theirs.values()],
        ),
        verdicts=tuple(_changed_verdicts(left, right)),
    )


def _turns(left: History, right: History) -> Iterator[ComparedTurn]:
    ours, theirs = _statements(left), _statements(right)
    for utterance_id in [*ours, *(each for each in theirs if each not in ours)]:
        one, other = ours.get(utterance_id), theirs.get(utterance_id)
        label, others = _label(one), _label(other)
        same = label == others
        yield ComparedTurn(utterance_id, label, others, same, same and _said(one) == _said(other))


def _statements(history: History) -> dict[str, LogEvent]:
    """The newest event of every statement: a turn that was missing may have been filled."""
    return {
        event.utterance.id: event
        for event in history.events
        if isinstance(event, OperationsAppended | InterpretationFailed)
    }


def _label(event: LogEvent | None) -> Kinds | None:
    if not isinstance(event, OperationsAppended):
        return None
    return kinds(event.operations)


def _said(event: LogEvent | None) -> bytes:
    return canonical_content(event.operations if isinstance(event, OperationsAppended) else None)


_Verdicts = dict[tuple[str, int | None, str | None], Outcome]


def _changed_verdicts(left: History, right: History) -> Iterator[ChangedVerdict]:
    ours, theirs = _verdicts(left), _verdicts(right)
    for key in [*ours, *(each for each in theirs if each not in ours)]:
        one, other = ours.get(key), theirs.get(key)
        if one != other:
            yield ChangedVerdict(*key, one, other)


def _verdicts(history: History) -> _Verdicts:
    found: _Verdicts = {}
    for event, derived in zip(history.events, history.derived, strict=True):
        for each in derived:
            if isinstance(each, VerdictEvent):
                index = None if each.candidate is None else each.candidate.claim_index
                found[event.utterance.id, index, each.record] = each.outcome
    return found


def _words(claim: str) -> str:
    return " ".join(claim.casefold().split())


def _jaccard(left: Sequence[str], right: Sequence[str]) -> float:
    return share(len({*left} & {*right}), len({*left} | {*right}))
