"""What must have come of the utterances on the topic, and what did.

The oracle folds the `utterances` topic itself, in its order, with the same pure functions in this
process; the outcome is read from the log, the derived topics and the dead letters. A letter may be
written twice, and a derived event emitted twice, with the same bytes; everything else is exact.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from processor.app.interpret import (
    AlreadyInLog,
    DeadLetterClass,
    Unusable,
    interpret,
    needs_reading,
)
from processor.app.messages import (
    DEAD_LETTERS,
    DERIVED_TOPICS,
    OPERATIONS,
    UTTERANCES,
    Delivered,
    derived_messages,
)
from processor.app.partitions import partition_of
from processor.app.reduce import reduce
from processor.app.reduce_agent import read_log_event
from processor.app.utterance_reader import UtteranceReader
from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused
from processor.interpreter.port import Interpreted
from schemas.derived import DerivedEvent
from schemas.ids import conversation_key
from schemas.log import LogEvent
from schemas.wire import WireError, decode_utterance
from tests.faults import script
from tests.pipeline.workers import read


class Turn(NamedTuple):
    """One event of a conversation's log, by what it must be equal in."""

    utterance_id: str
    digest: str
    state_digest: str


@dataclass
class Outcome:
    """What came of everything that was said."""

    conversations: dict[str, list[Turn]] = field(default_factory=lambda: defaultdict(list))
    derived: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    letters: set[tuple[int, int, str]] = field(default_factory=set)


def _keep(
    outcome: Outcome, conversation: Conversation, event: LogEvent, derived: tuple[DerivedEvent, ...]
) -> None:
    key = conversation_key(event.tenant_id, event.conversation_id)
    state = conversation.state_digest()
    outcome.conversations[key].append(Turn(event.utterance.id, conversation.digest, state))
    for message in derived_messages(derived, event.at, 0, frozenset()):
        id_ = dict(message.headers)["ce_id"].decode()
        outcome.derived[id_] = (message.topic, message.value)


def expected(bootstrap: str, partitions: int, *, scripted: bool = True) -> Outcome:
    """What the utterances on the topic must lead to."""
    outcome = Outcome()
    held: dict[str, Conversation] = {}
    for record in read(bootstrap, UTTERANCES, partitions):
        letter = _say(outcome, held, record, partitions, scripted)
        if letter is not None:
            outcome.letters.add((record.partition, record.offset, letter.value))
    return outcome


def _say(
    outcome: Outcome, held: dict[str, Conversation], record: Any, partitions: int, scripted: bool
) -> DeadLetterClass | None:
    try:
        utterance = decode_utterance(record.value or b"")
    except WireError:
        return DeadLetterClass.INVALID
    key = conversation_key(utterance.tenant_id, utterance.conversation_id)
    if record.key != key.encode():
        return DeadLetterClass.WRONG_KEY
    if record.partition != partition_of(record.key, partitions):
        return DeadLetterClass.WRONG_PARTITION
    conversation = held.get(key)
    if conversation is None:
        conversation = Conversation.empty(utterance.tenant_id, utterance.conversation_id)
        held[key] = conversation
    reading: Interpreted | None = None
    if scripted and needs_reading(utterance):
        reader = UtteranceReader(script.ScriptedInterpreter(seconds_max=0.0, failures=0.0))
        reading = asyncio.run(reader.read(conversation, utterance))
        reading = reader.standing(conversation, utterance, reading)
    event = interpret(conversation, utterance, reading=reading)
    if isinstance(event, Unusable):
        return event.dead_letter_class
    if not isinstance(event, AlreadyInLog):
        derived = reduce(conversation, event)
        assert not isinstance(derived, Refused), derived
        _keep(outcome, conversation, event, derived)
    if utterance.utterance_id in conversation.missing.values():
        return DeadLetterClass.NOT_INTERPRETED
    return None


def found(bootstrap: str, partitions: int) -> Outcome:
    """What the topics hold; the same id twice must say the same on the same topic."""
    outcome = Outcome()
    held: dict[str, Conversation] = {}
    for record in read(bootstrap, OPERATIONS, partitions):
        message = Delivered(OPERATIONS, record.partition, record.offset, record.key, record.value)
        event = read_log_event(message)
        if event is None:
            continue
        key = conversation_key(event.tenant_id, event.conversation_id)
        assert record.partition == partition_of(key.encode(), partitions)
        conversation = held.get(key)
        if conversation is None:
            conversation = Conversation.empty(event.tenant_id, event.conversation_id)
            held[key] = conversation
        derived = reduce(conversation, event)
        if not isinstance(derived, Refused):
            _keep(outcome, conversation, event, derived)
    outcome.derived = emitted(bootstrap, partitions)
    outcome.letters = {
        (int(told["source_partition"]), int(told["source_offset"]), told["class"].decode())
        for told in (dict(each.headers) for each in read(bootstrap, DEAD_LETTERS, partitions))
    }
    return outcome


def emitted(bootstrap: str, partitions: int) -> dict[str, tuple[str, bytes]]:
    """Every derived event by its id, with its topic."""
    events: dict[str, tuple[str, bytes]] = {}
    for topic in DERIVED_TOPICS.values():
        for record in read(bootstrap, topic, partitions):
            headers: Mapping[str, bytes] = dict(record.headers)
            assert headers["ce_subject"] == record.key, "another conversation's event"
            event = (topic, record.value)
            assert events.setdefault(headers["ce_id"].decode(), event) == event
    return events


def assert_nothing_lost(bootstrap: str, partitions: int, *, scripted: bool = True) -> Outcome:
    """The log, every derived event and every dead letter are what they must be."""
    must, did = expected(bootstrap, partitions, scripted=scripted), found(bootstrap, partitions)
    assert did.conversations == must.conversations
    assert did.derived == must.derived
    assert did.letters == must.letters
    return did
