"""What goes out to Kafka: topic, partition, key, value and headers of each message.

Pure functions of what is said, so that whoever sends the same thing twice sends the same bytes.
Headers are CloudEvents 1.0 in binary content mode; dead letters have headers of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple, final

import orjson

from processor.app.interpret import DeadLetterClass, Unusable
from processor.vault.sealed import Kind
from processor.vault.vault import Vault
from schemas.derived import (
    ContextUpdate,
    DerivedEvent,
    RetractionImpact,
    TurnEvent,
    UngroundedAlert,
    VerdictEvent,
)
from schemas.ids import conversation_key
from schemas.keys import KeyRecord, WrappedKey
from schemas.log import ConversationErased, LogEvent
from schemas.topics import UTTERANCE_TYPE
from schemas.utterance import Utterance
from schemas.wire import canonical_bytes

OPERATIONS = "operations"
UTTERANCES = "utterances"
DEAD_LETTERS = "dead-letters"
SNAPSHOTS = "snapshots"
KEYS = "keys"
DERIVED_TOPICS = {
    VerdictEvent: "verdicts",
    RetractionImpact: "retraction-impacts",
    UngroundedAlert: "ungrounded-alerts",
    ContextUpdate: "context-updates",
}
DEAD_LETTER_BYTES_MAX = 1_572_864
"""Of the original; with its headers it stays below what the topic takes."""

JSON_TYPE = b"application/json"
SEALED_TYPE = b"application/octet-stream"

REQUEUED = "requeued"
"""The header of an utterance that was a dead letter: if its turn is missing, read it again."""

Headers = tuple[tuple[str, bytes], ...]


@final
class Delivered(NamedTuple):
    """A message as the broker delivered it; `value` is None for a tombstone."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def is_requeued(self) -> bool:
        """Whether it was a dead letter before."""
        return any(name == REQUEUED for name, _ in self.headers)


@final
class Outgoing(NamedTuple):
    """A message to send; without a value it deletes those of its key from a compacted topic."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    headers: Headers


def utterance_message(utterance: Utterance, written: bytes, partition: int) -> Outgoing:
    """An utterance as it was written: its canonical form may be longer than one may be."""
    key = conversation_key(utterance.tenant_id, utterance.conversation_id)
    headers = _cloud_event(utterance.utterance_id, UTTERANCE_TYPE, key, utterance.at)
    return Outgoing(UTTERANCES, partition, key.encode(), written, headers)


def log_message(
    event: LogEvent, partition: int, carried: Headers = (), vault: Vault | None = None
) -> Outgoing:
    """An event for the log; `carried` are headers beside its own. Sealed if there is a vault.

    Then its id is made of the sealed bytes: one made of what was said would tell a guess from the
    truth. That a conversation was erased is said in the clear.
    """
    key = conversation_key(event.tenant_id, event.conversation_id)
    value, content_type = canonical_bytes(event), JSON_TYPE
    told: object = [key, event.sequence, event.utterance.digest]
    if vault is not None and not isinstance(event, ConversationErased):
        value = vault.seal(Kind.EVENT, event.tenant_id, event.conversation_id, value)
        told, content_type = [key, hashlib.sha256(value).hexdigest()], SEALED_TYPE
    id_ = hashlib.sha256(orjson.dumps(told)).hexdigest()
    headers = _cloud_event(id_, event.type, key, event.at, content_type)
    return Outgoing(OPERATIONS, partition, key.encode(), value, headers + carried)


def key_message(record: KeyRecord, partition: int) -> Outgoing:
    """A wrapped data key, or that those of a conversation were destroyed."""
    owner = conversation_key(record.tenant_id, record.conversation_id)
    key = f"{owner}#{record.key_id}" if isinstance(record, WrappedKey) else owner
    return Outgoing(KEYS, partition, key.encode(), canonical_bytes(record), ())


def derived_messages(
    events: Sequence[DerivedEvent],
    at: datetime,
    partition: int,
    alert_tenants: frozenset[str],
    carried: Headers = (),
) -> list[Outgoing]:
    """What was derived from a log event that was said `at`; turn events have no topic.

    The alerts of `alert_tenants` go to a topic of the tenant too. `carried` are headers beside
    those of each message.
    """
    outgoing: list[Outgoing] = []
    for event in events:
        if isinstance(event, TurnEvent):
            continue
        key = conversation_key(event.tenant_id, event.conversation_id)
        headers = _cloud_event(event.event_id, event.TYPE, key, at)
        topic = DERIVED_TOPICS[type(event)]
        message = Outgoing(
            topic, partition, key.encode(), canonical_bytes(event), headers + carried
        )
        outgoing.append(message)
        if isinstance(event, UngroundedAlert) and event.tenant_id in alert_tenants:
            outgoing.append(message._replace(topic=f"{topic}.{event.tenant_id}"))
    return outgoing


def dead_letter_message(message: Delivered, letter: Unusable, attempts: int) -> Outgoing:
    """The original bytes, cut if they are too many, and what was wrong with them."""
    original = message.value or b""
    if letter.dead_letter_class is DeadLetterClass.ERASED:
        original = b""
    kept = original[:DEAD_LETTER_BYTES_MAX]
    reason = f"{letter.place}: {letter.problem}" if letter.place else letter.problem
    tenant, _, _ = (message.key or b"").partition(b"/")
    headers = [
        ("reason", reason.encode()),
        ("class", letter.dead_letter_class.value.encode()),
        ("attempts", str(attempts).encode()),
        ("tenant", tenant[:64]),
        ("source_topic", message.topic.encode()),
        ("source_partition", str(message.partition).encode()),
        ("source_offset", str(message.offset).encode()),
    ]
    if len(kept) < len(original):
        headers.append(("sha256", hashlib.sha256(original).hexdigest().encode()))
    return Outgoing(DEAD_LETTERS, message.partition, message.key or b"", kept, tuple(headers))


def _cloud_event(
    id_: str, type_: str, key: str, at: datetime, content_type: bytes = JSON_TYPE
) -> Headers:
    return (
        ("ce_specversion", b"1.0"),
        ("ce_id", id_.encode()),
        ("ce_source", f"/conversations/{key}".encode()),
        ("ce_type", type_.encode()),
        ("ce_time", at.astimezone(UTC).isoformat().replace("+00:00", "Z").encode()),
        ("ce_subject", key.encode()),
        ("content-type", content_type),
    )
