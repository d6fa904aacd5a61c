"""What every request about a conversation goes through, in the same order whoever asks.

Token, scope, rate, a slot; then the owner: another worker, or this one. A token of another tenant
is served like any other from there on, except that the conversation is looked for where none is: so
its answer cannot be told from the one about a conversation that does not exist, nor its time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias, TypeVar, final
from weakref import WeakValueDictionary

from aiohttp import web

from processor.app.conversations import Conversations, Elsewhere, Ours
from processor.app.errors import BrokerError
from processor.app.gate_settings import GateSettings
from processor.app.progress import EpochEnded
from processor.app.tenants import PLAIN, Tenants
from processor.app.tracing import Tracing
from processor.app.web import views
from processor.app.web.asked import Asked
from processor.app.web.checks import check_bytes, pending_elsewhere
from processor.app.web.limits import Rates, Slot, Slots
from processor.app.web.problem_details import (
    RETRY_SECONDS,
    Kind,
    ProblemRaised,
    invalid,
    rebalancing,
)
from processor.app.web.routing import Forwarder, OwnerSilent
from processor.app.web.tokens import TOKEN_CHARS_MAX, Holder, Scope, Tokens
from processor.app.web.wrong_tokens import WrongTokens
from processor.app.worker_erasure import KeptInTheClear
from processor.vault.errors import KeysAwayError
from schemas.contract import Contract
from schemas.http import (
    WAIT_MS_DEFAULT,
    WAIT_MS_MAX,
    AffectedQuery,
    AlertsQuery,
    CheckRequest,
    ContextQuery,
    ErasedAnswer,
    MemoryQuery,
    NoQuery,
    ViewQuery,
    decode_query,
)
from schemas.ids import NAME_PATTERN, RECORD_PATTERN, TENANT_PATTERN
from schemas.wire import WireError, canonical_bytes, decode_contract

CONVERSATION = "/v1/tenants/{tenant}/conversations/{conversation}"
RECORD = CONVERSATION + "/records/{record:.+}"
"""A record's id may hold a slash, written as one or as %2F."""
READ_SECONDS_MAX = 10.0
CHECK_SECONDS_MORE = 1.0
"""What an owner may take for a check beyond the wait that it was asked for."""
VIEW_SECONDS_MORE = 10.0
"""The same for a view, of a long conversation perhaps: it has no `pending`."""
ERASE_SECONDS_MAX = 300.0
"""What an owner may take to erase: it reads a partition of the log."""
Respond: TypeAlias = Callable[[web.Request, Asked, bytes, Slot], Awaitable[bytes]]
Model = TypeVar("Model", bound=Contract)


@final
@dataclass
class Gate:
    """Serves checks, views and erasures."""

    settings: GateSettings
    conversations: Conversations
    tokens: Tokens
    forwarder: Forwarder
    tenants: Tenants = PLAIN
    tracing: Tracing = field(default_factory=Tracing)

    def __post_init__(self) -> None:
        settings = self.settings
        self._rates = Rates(settings.requests_per_second, settings.requests_burst)
        self._wrong_tokens = WrongTokens(
            settings.wrong_tokens_per_second, settings.wrong_tokens_burst
        )
        self._copying: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._slots = Slots(settings.waiting_max, settings.waiting_per_tenant_max)

    def routes(self) -> list[web.RouteDef]:
        """Every path about a conversation."""
        post, get, delete = web.post, web.get, web.delete
        reads = Scope.READ
        return [
            self._route(post, f"{CONVERSATION}/check", Scope.CHECK, self._check),
            self._route(delete, CONVERSATION, Scope.ERASE, self._erase),
            self._route(get, f"{CONVERSATION}/state", reads, self._state),
            self._route(get, f"{CONVERSATION}/affected", reads, self._affected),
            self._route(get, f"{CONVERSATION}/context", reads, self._context),
            self._route(get, f"{CONVERSATION}/memory", reads, self._memory),
            self._route(get, f"{CONVERSATION}/alerts", reads, self._alerts),
            self._route(get, f"{CONVERSATION}/records/{{record:.+}}", reads, self._record),
        ]

    def _route(
        self, method: Callable[..., web.RouteDef], path: str, scope: Scope, respond: Respond
    ) -> web.RouteDef:
        async def serve(request: web.Request) -> web.Response:
            with self.tracing.request(request.method, path, request.headers) as answered:
                try:
                    response = await self._admit(request, scope, respond)
                except ProblemRaised as raised:
                    answered(raised.kind.value.status)
                    raise
                answered(response.status)
                return response

        return method(path, serve)

    async def _admit(self, request: web.Request, scope: Scope, respond: Respond) -> web.Response:
        """Serve whoever may ask, within its bounds. Raises ProblemRaised."""
        holder = self._holder(request, scope)
        charged = _charged(request, holder)
        retry_s = self._rates.take(charged)
        if retry_s is not None:
            raise ProblemRaised(Kind.TOO_MANY, retry_s=retry_s)
        slot = self._slots.take(charged)
        if slot is None:
            raise ProblemRaised(Kind.BUSY, retry_s=RETRY_SECONDS)
        try:
            return await self._serve(request, holder, respond, slot)
        except EpochEnded as ended:
            raise rebalancing() from ended
        finally:
            slot.release()

    def _holder(self, request: web.Request, scope: Scope) -> Holder:
        """Who asks. Raises ProblemRaised, the same for every token that is not valid."""
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        is_token = kind.lower() == "bearer" and len(token) <= TOKEN_CHARS_MAX
        holder = self.tokens.holder(token.strip() if is_token else None, datetime.now(UTC))
        if holder is None:
            raise self._wrong_tokens.problem(request.remote)
        if scope not in holder.scopes:
            raise ProblemRaised(Kind.FORBIDDEN)
        return holder

    async def _serve(
        self, request: web.Request, holder: Holder, respond: Respond, slot: Slot
    ) -> web.Response:
        tenant_id = _id(request, "tenant", TENANT_PATTERN, Kind.NO_CONVERSATION)
        conversation_id = _id(request, "conversation", NAME_PATTERN, Kind.NO_CONVERSATION)
        body = await _body(request)
        match self.conversations.owner_of(tenant_id, conversation_id):
            case None:
                raise rebalancing()
            case Elsewhere(address):
                return await self._of_owner(request, tenant_id, conversation_id, body, address)
            case Ours() as owner:
                asked = Asked(
                    self.conversations,
                    owner,
                    tenant_id,
                    conversation_id,
                    is_hidden=holder.tenant_id not in (None, tenant_id),
                    copying=self._copying.setdefault(_charged(request, holder), asyncio.Lock()),
                )
                answer = await respond(request, asked, body, slot)
                return web.Response(body=answer, content_type="application/json")

    async def _of_owner(
        self,
        request: web.Request,
        tenant_id: str,
        conversation_id: str,
        body: bytes,
        address: str,
    ) -> web.Response:
        """What the owner answers, or what it would say of what is not folded in time."""
        if request.method == "POST":
            seconds, pending = pending_elsewhere(tenant_id, conversation_id, body)
            seconds += CHECK_SECONDS_MORE
        elif request.method == "DELETE":
            seconds, pending = ERASE_SECONDS_MAX, b""
        else:
            wait_ms = request.query.get("wait_ms", "")
            waits = wait_ms.isascii() and wait_ms.isdecimal() and len(wait_ms) < 6
            seconds = min(int(wait_ms) if waits else WAIT_MS_DEFAULT, WAIT_MS_MAX) / 1_000
            seconds, pending = seconds + VIEW_SECONDS_MORE, b""
        try:
            carried = {name: value.decode() for name, value in self.tracing.carried()}
            return await self.forwarder.forward(request, body, address, seconds, carried)
        except OwnerSilent as silent:
            if not pending:
                raise rebalancing() from silent
            return web.Response(body=pending, content_type="application/json")

    async def _check(self, request: web.Request, asked: Asked, body: bytes, slot: Slot) -> bytes:
        if request.content_type != "application/json":
            raise ProblemRaised(Kind.UNSUPPORTED)
        try:
            read = decode_contract(CheckRequest, body)
        except WireError as wrong:
            raise invalid(wrong) from wrong
        most = self.settings.claims_max
        if len(read.claims or ()) > most:
            raise ProblemRaised(Kind.INVALID, place="claims", detail=f"at most {most} claims")
        return await check_bytes(asked, read, slot)

    async def _erase(self, request: web.Request, asked: Asked, _: bytes, __: Slot) -> bytes:
        _query(request, NoQuery)
        ids = (asked.tenant_id, asked.looked_for)
        try:
            erased = await asked.conversations.erase(asked.owner, *ids)
        except KeptInTheClear as clear:
            raise ProblemRaised(Kind.KEPT_IN_THE_CLEAR) from clear
        except KeysAwayError as away:
            raise ProblemRaised(Kind.KEYS_AWAY, retry_s=RETRY_SECONDS) from away
        except BrokerError as failure:
            raise rebalancing() from failure
        if erased is None:
            raise ProblemRaised(Kind.NO_CONVERSATION)
        return canonical_bytes(
            ErasedAnswer(
                tenant_id=asked.tenant_id,
                conversation_id=asked.conversation_id,
                in_the_clear=erased.in_the_clear,
            )
        )

    async def _state(self, request: web.Request, asked: Asked, _: bytes, __: Slot) -> bytes:
        return await views.state(asked, _query(request, ViewQuery))

    async def _affected(self, request: web.Request, asked: Asked, _: bytes, __: Slot) -> bytes:
        return await views.affected(asked, _query(request, AffectedQuery))

    async def _context(self, request: web.Request, asked: Asked, _: bytes, __: Slot) -> bytes:
        return await views.context(asked, _query(request, ContextQuery))

    async def _memory(self, request: web.Request, asked: Asked, _: bytes, __: Slot) -> bytes:
        of_tenant = self.tenants.memory_class(asked.tenant_id)
        return await views.memory(asked, _query(request, MemoryQuery), of_tenant)

    async def _alerts(self, request: web.Request, asked: Asked, _: bytes, __: Slot) -> bytes:
        return await views.alerts(asked, _query(request, AlertsQuery))

    async def _record(self, request: web.Request, asked: Asked, _: bytes, __: Slot) -> bytes:
        query = _query(request, ViewQuery)
        return await views.record(
            asked, query, _id(request, "record", RECORD_PATTERN, Kind.NO_RECORD)
        )


def _charged(request: web.Request, holder: Holder) -> str:
    """The tenant on whose account a request is: that of the token, whatever it asks for."""
    return holder.tenant_id or request.match_info["tenant"]


async def _body(request: web.Request) -> bytes:
    """The whole body. Raises ProblemRaised, and what aiohttp raises for one that is too large."""
    try:
        async with asyncio.timeout(READ_SECONDS_MAX):
            return await request.read()
    except TimeoutError as slow:
        raise ProblemRaised(Kind.TOO_SLOW) from slow
    except web.RequestPayloadError as garbled:
        raise ProblemRaised(Kind.INVALID, detail="the body cannot be decoded") from garbled


def _id(request: web.Request, name: str, pattern: str, kind: Kind) -> str:
    """An id of the path. Raises ProblemRaised if nothing can have it."""
    id_ = request.match_info[name]
    if not re.fullmatch(pattern.rstrip("$"), id_):
        raise ProblemRaised(kind)
    return id_


def _query(request: web.Request, model: type[Model]) -> Model:
    try:
        return decode_query(model, request.query.items())
    except WireError as wrong:
        raise invalid(wrong) from wrong
