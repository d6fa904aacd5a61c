"""Identifiers: what they may look like, and the key that owns a conversation."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

TENANT_PATTERN = r"^[A-Za-z0-9-]{1,64}$"
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"
RECORD_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:@'/-]{0,127}$"

TenantId = Annotated[str, Field(pattern=TENANT_PATTERN)]
ConversationId = Annotated[str, Field(pattern=NAME_PATTERN)]
UtteranceId = Annotated[str, Field(pattern=NAME_PATTERN)]
AgentId = Annotated[str, Field(pattern=NAME_PATTERN)]
RoleName = Annotated[str, Field(pattern=NAME_PATTERN)]
RecordId = Annotated[str, Field(pattern=RECORD_PATTERN)]
"""Records and questions share one id space in a conversation."""
VariableName = Annotated[str, Field(pattern=RECORD_PATTERN)]
"""A propositional variable; every record's id is one."""


def conversation_key(tenant_id: str, conversation_id: str) -> str:
    """The Kafka key and store key of a conversation: `tenant/conversation`."""
    return f"{tenant_id}/{conversation_id}"
