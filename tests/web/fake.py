"""Conversations in memory behind the port of the HTTP server, and a client for a running server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import orjson

from processor.app.conversations import Ours, Owner
from processor.app.erasure import Erased
from processor.app.folded_utterances import FoldedUtterances
from processor.app.gate_settings import GateSettings
from processor.app.interpret import AlreadyInLog, Unusable, interpret
from processor.app.reduce_agent import Folded
from processor.app.tenants import PLAIN, Tenants
from processor.app.web.server import WebServer
from processor.app.web.tokens import Scope, TokenLine, new_token
from processor.engine.conversation import Conversation
from processor.evidence.fold import advance
from processor.interpreter.port import Interpreted
from processor.render.reduce import reduce
from replay.alerts import AlertPage, AlertPlace
from schemas.derived import UngroundedAlert
from schemas.http import PLACE_MAX, Readiness
from schemas.utterance import Utterance
from schemas.wire import canonical_bytes, decode_utterance
from tests.waiting import WAIT_SECONDS_MAX

Answer = TypeVar("Answer")
HERE = "/v1/tenants/acme/conversations/c1"
AT = "2026-03-01T02:31:00Z"


def observe(record: str, *premises: str) -> dict[str, Any]:
    """An observation."""
    return {"op": "observe", "record": record, "claim": f"claim of {record}", "premises": premises}


def statement(utterance_id: str, *operations: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """An utterance that brings its operations."""
    return {
        "tenant_id": "acme",
        "conversation_id": "c1",
        "utterance_id": utterance_id,
        "speaker": "ann",
        "at": AT,
        "operations": operations,
        **fields,
    }


class FakeConversations:
    """Folds what is said at once; drafts too, unless `is_stuck`."""

    def __init__(self, owner: Owner = Ours(0, 0)) -> None:  # noqa: B008 - it is frozen
        self.owner = owner
        self.is_stuck = False
        self.runs = True
        self.well = Readiness(
            ready=True, assigned=True, recovered=True, store_open=True, endpoint=True
        )
        self.reading: Interpreted | None = None
        self.read_texts: list[str] = []
        self.appended: list[Utterance] = []
        self.log: dict[tuple[str, str], list[Folded]] = {}
        self.live: dict[tuple[str, str], Conversation] = {}
        self.folded = FoldedUtterances()
        self.waits = 0
        self.erased: list[tuple[str, str]] = []
        self.erasing: Exception | None = None

    def say(self, *utterances: dict[str, Any]) -> None:
        """Fold utterances."""
        for each in utterances:
            self._fold(decode_utterance(orjson.dumps(each)))

    def _fold(self, utterance: Utterance) -> Unusable | None:
        key = (utterance.tenant_id, utterance.conversation_id)
        conversation = self.live.setdefault(key, Conversation.empty(*key))
        event = interpret(conversation, utterance)
        if isinstance(event, Unusable):
            return event
        if not isinstance(event, AlreadyInLog):
            derived = reduce(conversation, event)
            assert isinstance(derived, tuple)
            folded = Folded(event, derived)
            self.log.setdefault(key, []).append(folded)
            self.folded.tell(folded)
        return None

    def owner_of(self, tenant_id: str, conversation_id: str) -> Owner:
        """The same for all."""
        return self.owner

    async def find(self, owner: Ours, tenant_id: str, conversation_id: str) -> Conversation | None:
        """What was said."""
        return self.live.get((tenant_id, conversation_id))

    async def copied(
        self,
        tenant_id: str,
        conversation_id: str,
        turn: int | None,
        view: Callable[[Conversation], Answer],
    ) -> Answer | None:
        """Folds the log again, up to the turn."""
        copy = Conversation.empty(tenant_id, conversation_id)
        for folded in self.log.get((tenant_id, conversation_id), []):
            if copy.turn == turn:
                break
            advance(copy, folded.event)
        if not copy.sequence or turn not in (None, copy.turn):
            return None
        return await asyncio.to_thread(view, copy)

    async def alerts(
        self, owner: Ours, tenant_id: str, conversation_id: str, since: AlertPlace, most: int
    ) -> AlertPage | None:
        """Those of the log, all of which is here."""
        log = self.log.get((tenant_id, conversation_id), [])
        found = [
            (AlertPlace(folded.event.sequence, number), each)
            for folded in log
            for number, each in enumerate(folded.derived)
            if isinstance(each, UngroundedAlert)
        ]
        behind = [each for each in found if each[0] > since]
        if not log:
            return None
        is_last = len(behind) <= most
        last = AlertPlace(log[-1].event.sequence, PLACE_MAX) if is_last else behind[most - 1][0]
        return AlertPage(tuple(behind[:most]), last, is_last=is_last, is_whole=True)

    async def recorded(
        self, tenant_id: str, conversation_id: str, utterance_id: str
    ) -> Folded | None:
        """From the log."""
        log = self.log.get((tenant_id, conversation_id), [])
        return next((each for each in log if each.event.utterance.id == utterance_id), None)

    def watching(
        self, tenant_id: str, conversation_id: str, utterance_id: str
    ) -> AbstractContextManager[asyncio.Future[Folded]]:
        """As in a worker."""
        self.waits += 1
        return self.folded.watching(tenant_id, conversation_id, utterance_id)

    def append(self, owner: Ours, utterance: Utterance) -> asyncio.Future[Unusable | None]:
        """At once, or never."""
        done: asyncio.Future[Unusable | None] = asyncio.get_running_loop().create_future()
        self.appended.append(utterance)
        if not self.is_stuck:
            done.set_result(self._fold(utterance))
        return done

    def read(self, owner: Ours, utterance: Utterance) -> asyncio.Future[Interpreted | None]:
        """The reading that was given, if the endpoint answers."""
        done: asyncio.Future[Interpreted | None] = asyncio.get_running_loop().create_future()
        self.read_texts.append(utterance.text)
        if not self.is_stuck:
            done.set_result(self.reading)
        return done

    async def erase(self, owner: Ours, tenant_id: str, conversation_id: str) -> Erased | None:
        """What was said is gone, once; `erasing` fails if it was set."""
        if self.erasing is not None:
            raise self.erasing
        key = (tenant_id, conversation_id)
        is_known = self.live.pop(key, None) is not None or key in self.erased
        if not is_known:
            return None
        self.erased.append(key)
        return Erased(*key, was_known=True)

    def readiness(self) -> Readiness:
        """As it was set."""
        return self.well

    def consumer_runs(self) -> bool:
        """As it was set."""
        return self.runs

    def rebalance(self) -> None:
        """Whoever waits is told that it is another's now."""
        self.owner = None
        self.folded.new_epoch()


class Client:
    """Asks one server."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self.session = session
        self.address = f"http://127.0.0.1:{port}"

    async def ask(
        self, method: str, path: str, token: str | None = None, **options: Any
    ) -> tuple[int, Any, aiohttp.ClientResponse]:
        """Status, JSON, and the rest."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        headers |= options.pop("headers", {})
        async with self.session.request(
            method, self.address + path, headers=headers, **options
        ) as response:
            return response.status, orjson.loads(await response.read()), response

    async def get(self, path: str, token: str | None = None, **options: Any) -> tuple[int, Any]:
        """A view."""
        status, said, _ = await self.ask("GET", path, token, **options)
        return status, said

    async def check(
        self, claims: Any = None, token: str | None = None, here: str = HERE, **fields: Any
    ) -> tuple[int, Any]:
        """A check."""
        asked = {"claims": claims, **fields}
        status, said, _ = await self.ask("POST", f"{here}/check", token, json=asked)
        return status, said


@asynccontextmanager
async def serving(
    conversations: FakeConversations,
    *extra_routes: Any,
    tenants: Tenants = PLAIN,
    **settings: Any,
) -> AsyncIterator[Client]:
    """A server on a free port, open unless tokens are given, and its client."""
    given = {"listen_port": 0, "open_gate": "tokens" not in settings, **settings}
    async with (
        WebServer(GateSettings(**given), conversations, extra_routes, tenants) as server,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        yield Client(session, server.port)


@contextmanager
def served(said: FakeConversations, **settings: Any) -> Iterator[str]:
    """A server in a loop and thread of its own, and its address."""
    loop = asyncio.new_event_loop()
    stop, started = asyncio.Event(), threading.Event()
    address: list[str] = []

    async def main() -> None:
        async with serving(said, **settings) as client:
            address.append(client.address)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    try:
        assert started.wait(60)
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


def run(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run it to its end; nothing takes longer than this."""

    async def bounded() -> Answer:
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            return await work

    return asyncio.run(bounded())


def write_tokens(path: Path, *lines: TokenLine) -> None:
    """A file of tokens."""
    path.write_bytes(b"\n".join(map(canonical_bytes, lines)) + b"\n")


def token_for(tenant_id: str, *scopes: Scope) -> tuple[str, TokenLine]:
    """A token, for everything if no scope is named."""
    return new_token(tenant_id, scopes or tuple(Scope), None)
