"""What the shared place of checkpoints holds: conversations, and marks that a set is complete.

A record is a line with the SHA-256 of the rest, a line with its head as JSON, and the payload. It
is believed only where all of that fits together.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from schemas.contract import Contract, Count, Digest, Sequence
from schemas.ids import ConversationId, TenantId
from schemas.wire import WireError, canonical_bytes

MARKER_KEY = b"marker"
"""The key of the newest marker of a partition; no conversation has it, for want of a slash."""


class _Head(Contract):
    """`record_hash` is that of the log's record before `next_offset`."""

    publisher: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    state_format: Count
    next_offset: Count
    record_hash: Digest


class SharedConversation(_Head):
    """A conversation with all its events before `next_offset`; the last has this sequence."""

    type: Literal["standfast.shared_conversation.v1"] = "standfast.shared_conversation.v1"
    tenant_id: TenantId
    conversation_id: ConversationId
    sequence: Sequence
    state_digest: Digest


class Forgotten(_Head):
    """What the key had before belongs to no set any more; deleting it would leave no trace."""

    type: Literal["standfast.forgotten_conversation.v1"] = "standfast.forgotten_conversation.v1"


class Marker(_Head):
    """Every conversation of the partition is published as far as the log before `next_offset`.

    `since` is the place from which on nobody else should have published on this partition;
    `conversations` says how many there are.
    """

    type: Literal["standfast.checkpoint_marker.v1"] = "standfast.checkpoint_marker.v1"
    since: Count
    conversations: Count


Head: TypeAlias = SharedConversation | Forgotten | Marker
_HEAD: TypeAdapter[Head] = TypeAdapter(Annotated[Head, Field(discriminator="type")])


def record_bytes(head: Head, payload: bytes = b"") -> bytes:
    """The bytes of a record."""
    body = canonical_bytes(head) + b"\n" + payload
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def read_record(stored: bytes) -> tuple[Head, bytes]:
    """Head and payload of a record. Raises WireError."""
    digest, _, body = stored.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise WireError("", "a record of a checkpoint has another hash")
    head, _, payload = body.partition(b"\n")
    try:
        return _HEAD.validate_json(head), payload
    except ValidationError as invalid:
        raise WireError("", "a record of a checkpoint has another head") from invalid
