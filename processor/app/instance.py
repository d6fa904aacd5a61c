"""Whether another worker has come under the same `instance`.

A group gives the place of a member that is named so to whoever comes last under that name, and who
had it before takes it back at once: two such workers throw each other out for ever. The one that
was thrown out looks who has its place, and ends if that is another process.
"""

from __future__ import annotations

import uuid
from typing import final

from processor.app.connection import admin_client
from processor.app.errors import BrokerError
from processor.app.settings import KafkaSettings


class InstanceTaken(Exception):  # noqa: N818 - it says what happened
    """Another worker of the group has the same instance."""


@final
class Instance:
    """A worker's name in its group, if it has one; `client_id` is this process's alone."""

    def __init__(self, kafka: KafkaSettings, group: str, name: str | None) -> None:
        self._kafka = kafka
        self._group = group
        self._name = name
        self._prefix = f"standfast-{name}-"
        self.client_id = "standfast" if name is None else f"{self._prefix}{uuid.uuid4().hex}"

    async def check(self) -> None:
        """Raise InstanceTaken if another process has our place in the group."""
        if self._name is None:
            return
        try:
            clients = await self._clients()
        except BrokerError:
            return  # who has the place is told when brokers answer again
        if self.client_id not in clients and any(map(self._is_alike, clients)):
            raise InstanceTaken(
                f"another worker of the group {self._group} has the instance {self._name}: "
                "each needs one of its own"
            )

    def _is_alike(self, client_id: str) -> bool:
        rest = client_id.removeprefix(self._prefix)
        return rest != client_id and len(rest) == len(uuid.uuid4().hex) and "-" not in rest

    async def _clients(self) -> list[str]:
        async with admin_client(self._kafka) as admin:
            answers = await admin.describe_consumer_groups([self._group])
        return [
            client_id
            for answer in answers
            for _, _, _, _, _, members, *_ in answer.groups
            for _, client_id, *_ in members
        ]
