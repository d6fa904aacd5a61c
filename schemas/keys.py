"""Wrapped data keys: what the topic `keys` and the key folders beside stores hold.

A conversation has a data key of its own, wrapped by a key of its tenant; two writers that began at
once may have made one each, and both count. A destroyed mark closes the conversation for ever,
whatever comes after it. See `processor.vault`.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from schemas.contract import Contract
from schemas.ids import ConversationId, TenantId
from schemas.wire import WireError

KEY_ID_PATTERN = r"^[0-9a-f]{32}$"
TENANT_KEY_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
TICK_KEY = b"tick"
"""The key of a record that says nothing: brokers compact only what something came after."""

KeyId = Annotated[str, Field(pattern=KEY_ID_PATTERN)]
TenantKeyId = Annotated[str, Field(pattern=TENANT_KEY_PATTERN)]


class _OfConversation(Contract):
    tenant_id: TenantId
    conversation_id: ConversationId


class WrappedKey(_OfConversation):
    """A data key, wrapped: `wrapped` is ciphertext in hexadecimal under the tenant's key."""

    type: Literal["standfast.data_key.v1"] = "standfast.data_key.v1"
    key_id: KeyId
    tenant_key: TenantKeyId
    wrapped: Annotated[str, Field(pattern=r"^[0-9a-f]{64,1024}$")]


class DestroyedKey(_OfConversation):
    """The data keys of the conversation were destroyed: it is erased."""

    type: Literal["standfast.data_key_destroyed.v1"] = "standfast.data_key_destroyed.v1"


KeyRecord: TypeAlias = WrappedKey | DestroyedKey
_RECORD: TypeAdapter[KeyRecord] = TypeAdapter(Annotated[KeyRecord, Field(discriminator="type")])


def decode_key_record(stored: bytes) -> KeyRecord:
    """Read a record of the topic or of a folder. Raises WireError."""
    try:
        return _RECORD.validate_json(stored)
    except ValidationError as invalid:
        raise WireError("", "no wrapped data key of this version") from invalid
