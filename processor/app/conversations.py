"""The conversations of a worker, as its HTTP server sees them: who owns one, and what it says.

Questions are asked of the owner alone, in the epoch in which it is the owner: what outlives a
rebalance ends with EpochEnded. A draft enters through the lane of its conversation, so it keeps its
place among the utterances, counts against the same limits, and delays no fold.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, final

from processor.app.dispatcher import Dispatcher, Lane
from processor.app.erasure import Erased
from processor.app.folded_utterances import FoldedUtterances
from processor.app.interpret import Unusable
from processor.app.interpret_agent import InterpretAgent
from processor.app.local_store import LocalStore
from processor.app.progress import EpochEnded, FoldProgress
from processor.app.reduce_agent import Folded
from processor.app.setting_kinds import origin_of
from processor.app.tracing import Tracing
from processor.app.worker_erasure import KeptInTheClear, WorkerErasure
from processor.app.worker_keys import WorkerKeys
from processor.engine.conversation import Conversation
from processor.interpreter.port import Interpreted
from replay.alerts import AlertPage, AlertPlace, alerts_since
from schemas.http import Readiness
from schemas.ids import conversation_key
from schemas.utterance import Utterance

Answer = TypeVar("Answer")


@final
class Ours(NamedTuple):
    """This worker owns the conversation, in this epoch."""

    partition: int
    epoch: int


@final
class Elsewhere(NamedTuple):
    """Another worker owns it; where that one can be reached."""

    address: str


Owner: TypeAlias = Ours | Elsewhere | None
"""None: nobody can be asked now, because of a rebalance or a recovery."""


class Conversations(Protocol):
    """What the HTTP server asks. Everything that awaits may raise EpochEnded."""

    def owner_of(self, tenant_id: str, conversation_id: str) -> Owner:
        """Who can be asked about the conversation."""

    async def find(self, owner: Ours, tenant_id: str, conversation_id: str) -> Conversation | None:
        """The live conversation; None if nothing of it is folded. Not to be kept over an await."""

    async def copied(
        self,
        tenant_id: str,
        conversation_id: str,
        turn: int | None,
        view: Callable[[Conversation], Answer],
    ) -> Answer | None:
        """What a view says of a copy as of a turn, in another thread; None if it is not reached."""

    async def alerts(
        self, owner: Ours, tenant_id: str, conversation_id: str, since: AlertPlace, most: int
    ) -> AlertPage | None:
        """At most so many alerts behind a place; None if nothing of the conversation is folded."""

    async def recorded(
        self, tenant_id: str, conversation_id: str, utterance_id: str
    ) -> Folded | None:
        """The event that an utterance became, and what came of it."""

    def watching(
        self, tenant_id: str, conversation_id: str, utterance_id: str
    ) -> AbstractContextManager[asyncio.Future[Folded]]:
        """A future that has the utterance as soon as it is folded."""

    def append(self, owner: Ours, utterance: Utterance) -> asyncio.Future[Unusable | None]:
        """Append through the conversation's lane, whether or not the future is waited for.

        The result says why it cannot be appended, if so.
        """

    def read(self, owner: Ours, utterance: Utterance) -> asyncio.Future[Interpreted | None]:
        """What the interpreter makes of it, in its turn; cancelled, it is not asked any more."""

    async def erase(self, owner: Ours, tenant_id: str, conversation_id: str) -> Erased | None:
        """Erase the conversation, or complete that; None if nothing is known of it.

        Raises KeptInTheClear, KeysAwayError, and BrokerError.
        """

    def readiness(self) -> Readiness:
        """Whether the worker does its work."""

    def consumer_runs(self) -> bool:
        """Whether the thread that talks to the group has not died."""


class Host(Protocol):
    """What a worker says about itself."""

    def assignment(self) -> Mapping[int, bool] | None:
        """Its partitions, and whether each is ready; None before the first and in a rebalance."""

    def partition_of(self, key: bytes) -> int:
        """Where messages with the key belong."""

    def address_of(self, partition: int) -> str | None:
        """Where the group says that the owner of a partition can be reached."""

    def consumer_runs(self) -> bool:
        """Whether the thread that talks to the group has not died."""

    def endpoint_answers(self) -> bool:
        """Whether the interpreter's endpoint answered when it was asked last."""


@final
@dataclass
class ConversationsOfWorker:
    """Implements `Conversations` on the parts of a worker."""

    host: Host
    store: LocalStore
    progress: FoldProgress
    interpret: InterpretAgent
    dispatcher: Dispatcher
    folded: FoldedUtterances
    address: str | None
    peers: frozenset[str]
    tracing: Tracing = field(default_factory=Tracing)
    keys: WorkerKeys | None = None
    erasure: WorkerErasure | None = None
    _asked: dict[asyncio.Future[Any], float] = field(default_factory=dict)
    """What was asked and is not answered, and when."""

    def owner_of(self, tenant_id: str, conversation_id: str) -> Owner:
        """Who can be asked about the conversation; only peers on the list are believed."""
        assignment = self.host.assignment()
        if assignment is None:
            return None
        key = conversation_key(tenant_id, conversation_id).encode()
        partition = self.host.partition_of(key)
        if partition in assignment:
            can_be_asked = assignment[partition] and (
                self.keys is None or self.keys.can_be_asked(tenant_id, conversation_id)
            )
            return Ours(partition, self.progress.epoch) if can_be_asked else None
        address = _origin(self.host.address_of(partition))
        if address is None or address == self.address or address not in self.peers:
            return None
        return Elsewhere(address)

    async def find(self, owner: Ours, tenant_id: str, conversation_id: str) -> Conversation | None:
        """The live conversation; None if nothing of it is folded."""
        conversation = await self.store.find(tenant_id, conversation_id)
        self.progress.check(owner.epoch)
        return conversation

    async def copied(
        self,
        tenant_id: str,
        conversation_id: str,
        turn: int | None,
        view: Callable[[Conversation], Answer],
    ) -> Answer | None:
        """What a view says of a copy as of a turn, in another thread."""
        return await self.store.copied(tenant_id, conversation_id, turn, view)

    async def alerts(
        self, owner: Ours, tenant_id: str, conversation_id: str, since: AlertPlace, most: int
    ) -> AlertPage | None:
        """At most so many alerts behind a place; None if nothing of the conversation is folded."""
        conversation = await self.find(owner, tenant_id, conversation_id)
        if conversation is None:
            return None
        folded = conversation.sequence
        return await self.store.beside(
            lambda connection: alerts_since(
                connection, tenant_id, conversation_id, since, most, folded
            )
        )

    async def recorded(
        self, tenant_id: str, conversation_id: str, utterance_id: str
    ) -> Folded | None:
        """The event that an utterance became, and what came of it."""
        found = await self.store.recorded(tenant_id, conversation_id, utterance_id)
        return None if found is None else Folded(*found)

    def watching(
        self, tenant_id: str, conversation_id: str, utterance_id: str
    ) -> AbstractContextManager[asyncio.Future[Folded]]:
        """A future that has the utterance as soon as it is folded."""
        return self.folded.watching(tenant_id, conversation_id, utterance_id)

    def append(self, owner: Ours, utterance: Utterance) -> asyncio.Future[Unusable | None]:
        """Append through the conversation's lane."""

        async def work() -> Unusable | None:
            with self.tracing.step("append"):
                letter = await self.interpret.append(owner.partition, utterance)
            return None if letter is None else letter[0]

        return self._in_lane(owner, utterance, work)

    def read(self, owner: Ours, utterance: Utterance) -> asyncio.Future[Interpreted | None]:
        """What the interpreter makes of it, in its turn."""

        async def work() -> Interpreted | None:
            conversation = await self.store.find(utterance.tenant_id, utterance.conversation_id)
            if conversation is None:  # erased since it was found
                return None
            return await self.interpret.read(conversation, utterance)

        return self._in_lane(owner, utterance, work)

    async def erase(self, owner: Ours, tenant_id: str, conversation_id: str) -> Erased | None:
        """Erase the conversation, or complete that; None if nothing is known of it."""
        if self.keys is None or self.erasure is None:
            raise KeptInTheClear
        ids = (tenant_id, conversation_id)
        is_known = await self.keys.is_known(owner.partition, *ids)
        if await self.find(owner, *ids) is None and not is_known:
            return None
        return await self.erasure.erase(owner.partition, *ids, datetime.now(UTC))

    def _in_lane(
        self, owner: Ours, utterance: Utterance, work: Callable[[], Awaitable[Answer]]
    ) -> asyncio.Future[Answer]:
        """Run it in the conversation's turn; a rebalance ends it."""
        self.progress.check(owner.epoch)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[answer] = time.monotonic()
        answer.add_done_callback(self._answered)

        async def job() -> None:
            if answer.cancelled():
                return
            result = await work()
            if not answer.done():
                answer.set_result(result)

        lane = Lane(owner.partition, utterance.tenant_id, utterance.conversation_id)
        self.dispatcher.submit(lane, self.interpret.kind(utterance), job)
        return answer

    def _answered(self, answer: asyncio.Future[Any]) -> None:
        self._asked.pop(answer, None)
        if not answer.cancelled():
            answer.exception()  # whoever asked may have gone

    def new_epoch(self) -> None:
        """The partitions are assigned anew: nothing that was asked is answered here."""
        self.folded.new_epoch()
        for answer in list(self._asked):
            if not answer.done():
                answer.set_exception(EpochEnded())

    def oldest_asked_s(self) -> float:
        """How long the oldest draft that is not done has waited in its lane; 0 without any."""
        return max((time.monotonic() - since for since in self._asked.values()), default=0.0)

    def readiness(self) -> Readiness:
        """Whether the worker does its work."""
        assignment = self.host.assignment()
        told = {
            "assigned": assignment is not None,
            "recovered": assignment is not None and all(assignment.values()),
            "store_open": self.store.is_open(),
            "endpoint": self.host.endpoint_answers(),
            "keys": self.keys is None or self.keys.are_there,
        }
        return Readiness(ready=all(told.values()), **told)

    def consumer_runs(self) -> bool:
        """Whether the thread that talks to the group has not died."""
        return self.host.consumer_runs()


def _origin(told: str | None) -> str | None:
    """The address of a worker; None for what is none: any member of the group can tell one."""
    try:
        return None if told is None else origin_of(told)
    except ValueError:
        return None
