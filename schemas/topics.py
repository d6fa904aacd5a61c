"""The Kafka topics as data: what each carries, how long it is kept, and how it is cleaned.

Everything that names a topic reads it here: the AsyncAPI document, the command that creates and
checks topics, the workers. All topics have the same number of partitions and the same key, so that
one worker owns both ends of a conversation; partition and replica counts are settings of a site.
Source: specification, "The pipeline".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from schemas.contract import UTTERANCE_BYTES_MAX
from schemas.derived import ContextUpdate, RetractionImpact, UngroundedAlert, VerdictEvent
from schemas.ids import NAME_PATTERN, TENANT_PATTERN

UTTERANCE_TYPE = "standfast.utterance.v1"
LOG_TYPES = (
    "standfast.operations.v1",
    "standfast.interpretation_failed.v1",
    "standfast.candidate.v1",
    "standfast.setup.v1",
    "standfast.conversation_erased.v1",
)
KEY_PATTERN = f"{TENANT_PATTERN.rstrip('$')}/{NAME_PATTERN.lstrip('^')}"
"""The key of every message: `tenant/conversation` (`schemas.ids.conversation_key`)."""
TENANT_PARAMETER = "{tenant}"
"""Stands in the address of a topic that exists once per tenant that asks for it."""
UNLIMITED = -1
"""How Kafka writes that there is no limit of age or size."""

_DAY_MS = 24 * 60 * 60 * 1_000
_MEBIBYTE = 1_048_576
_SEGMENT_BYTES = 64 * _MEBIBYTE
"""Of a compacted topic. The last segment is never compacted: one of a gibibyte keeps it all."""


class Cleanup(StrEnum):
    """Kafka's `cleanup.policy`."""

    DELETE = "delete"
    COMPACT = "compact"


class Payload(StrEnum):
    """What the value of a message is."""

    EVENT = "event"
    """Canonical JSON of one of the types the topic carries."""
    ORIGINAL_BYTES = "original_bytes"
    """The value of another message as it was, with the reason in the headers."""
    CHECKPOINT = "checkpoint"
    """A head and a conversation as stores keep it, or a marker; see `schemas.checkpoint`."""
    DATA_KEY = "data_key"
    """A wrapped data key, or that those of a conversation were destroyed; see `schemas.keys`."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic.

    `carries` lists event types; it is empty unless the payload is an event. `retention_ms` is None
    where nothing is deleted for its age. `message_bytes_max` bounds a message with key and headers.
    `reads` and `writes` say what the workers do with the topic.
    """

    name: str
    address: str
    summary: str
    payload: Payload
    carries: tuple[str, ...]
    cleanup: Cleanup
    retention_ms: int | None
    message_bytes_max: int
    reads: bool
    writes: bool
    key_pattern: str = KEY_PATTERN

    def configuration(self) -> dict[str, int | str]:
        """Kafka's settings of the topic by name; -1 is Kafka's word for no limit.

        Brokers take apart what producers compress: readers need no library for it, and the limit is
        one of what a batch holds, not of what it was squeezed to.
        """
        return {
            "cleanup.policy": self.cleanup.value,
            "retention.ms": UNLIMITED if self.retention_ms is None else self.retention_ms,
            "retention.bytes": UNLIMITED,
            "max.message.bytes": self.message_bytes_max,
            "compression.type": "uncompressed",
            **({"segment.bytes": _SEGMENT_BYTES} if self.cleanup is Cleanup.COMPACT else {}),
        }

    @property
    def per_tenant(self) -> bool:
        """Whether it exists once for each tenant that asks for it."""
        return TENANT_PARAMETER in self.address

    def address_for(self, tenant_id: str) -> str:
        """The topic's name on the broker, for a tenant if there is one per tenant."""
        return self.address.replace(TENANT_PARAMETER, tenant_id)


def _derived(name: str, carries: str, summary: str, address: str | None = None) -> Topic:
    """A topic of derived events: written only, and always derivable again from the log."""
    return Topic(
        name=name,
        address=address or name,
        summary=summary,
        payload=Payload.EVENT,
        carries=(carries,),
        cleanup=Cleanup.DELETE,
        retention_ms=30 * _DAY_MS,
        message_bytes_max=4 * _MEBIBYTE,
        reads=False,
        writes=True,
    )


TOPICS = (
    Topic(
        name="utterances",
        address="utterances",
        summary="What is said in conversations: statements, candidates to check, setups.",
        payload=Payload.EVENT,
        carries=(UTTERANCE_TYPE,),
        cleanup=Cleanup.DELETE,
        retention_ms=30 * _DAY_MS,
        message_bytes_max=UTTERANCE_BYTES_MAX + 65_536,
        reads=True,
        writes=False,
    ),
    Topic(
        name="operations",
        address="operations",
        summary="The log: one event per utterance, the only input of the reducer.",
        payload=Payload.EVENT,
        carries=LOG_TYPES,
        cleanup=Cleanup.DELETE,
        retention_ms=None,
        message_bytes_max=4 * _MEBIBYTE,
        reads=True,
        writes=True,
    ),
    _derived(
        "verdicts",
        VerdictEvent.TYPE,
        "One answer per candidate claim, and one per decision whose grounding changed.",
    ),
    _derived(
        "retraction-impacts",
        RetractionImpact.TYPE,
        "What rested on a record that left good standing.",
    ),
    _derived("ungrounded-alerts", UngroundedAlert.TYPE, "One alert per broken dependency."),
    _derived(
        "ungrounded-alerts-by-tenant",
        UngroundedAlert.TYPE,
        "The alerts of one tenant, where it asks for them; broker ACLs can then separate tenants.",
        address=f"ungrounded-alerts.{TENANT_PARAMETER}",
    ),
    _derived(
        "context-updates",
        ContextUpdate.TYPE,
        "What a turn changed, in words, for the context of the next reply.",
    ),
    Topic(
        name="snapshots",
        address="snapshots",
        summary="The newest checkpoint of each conversation; losing all of them loses nothing.",
        payload=Payload.CHECKPOINT,
        carries=(),
        cleanup=Cleanup.COMPACT,
        retention_ms=None,
        message_bytes_max=16 * _MEBIBYTE,
        reads=True,
        writes=True,
        key_pattern=f"{KEY_PATTERN}|^marker$",
    ),
    Topic(
        name="keys",
        address="keys",
        summary="The wrapped data keys of conversations, where what they say is kept sealed.",
        payload=Payload.DATA_KEY,
        carries=(),
        cleanup=Cleanup.COMPACT,
        retention_ms=None,
        message_bytes_max=_MEBIBYTE,
        reads=True,
        writes=True,
        key_pattern=f"{KEY_PATTERN.rstrip('$')}(#[0-9a-f]{{32}})?$|^tick$",
    ),
    Topic(
        name="dead-letters",
        address="dead-letters",
        summary="Whatever could not be decoded or handled, as it was, with the reason.",
        payload=Payload.ORIGINAL_BYTES,
        carries=(),
        cleanup=Cleanup.DELETE,
        retention_ms=90 * _DAY_MS,
        message_bytes_max=2 * _MEBIBYTE,
        reads=True,
        writes=True,
    ),
)
"""All topics, in the order of the flow."""
BY_NAME = {topic.name: topic for topic in TOPICS}


def topic_at(address: str) -> Topic | None:
    """The topic that has this name on the broker, whichever tenant it is for."""
    for topic in TOPICS:
        before, parameter, after = topic.address.partition(TENANT_PARAMETER)
        tenant = address.removeprefix(before).removesuffix(after)
        if address == before + (tenant if parameter else "") + after and (
            not parameter or re.fullmatch(TENANT_PATTERN, tenant)
        ):
            return topic
    return None
