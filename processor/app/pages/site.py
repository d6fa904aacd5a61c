"""What a browser and a program can ask: pages as HTML, the same data as JSON, and news as events.

A token opens the conversations of its tenant and no others: those of another tenant are looked for
where none are, so the answer cannot be told from the one about a conversation that does not exist.
A browser gives the token once and gets it back as a cookie that no script reads and no other site
sends. Without tokens everybody on this machine may look, and nobody else.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar, final

import structlog
from aiohttp import web

from processor.app.gate_settings import is_loopback
from processor.app.pages import lists
from processor.app.pages.source import Source
from processor.app.web.asked import NOWHERE
from processor.app.web.problem_details import RETRY_SECONDS, Kind, ProblemRaised
from processor.app.web.tokens import TOKEN_CHARS_MAX, Holder, Scope, Tokens
from processor.app.web.wrong_tokens import WrongTokens
from replay.errors import NotKeptError, StoreBusyError, StoreError
from replay.report.page import report_page
from schemas.ids import NAME_PATTERN, TENANT_PATTERN
from schemas.wire import canonical_bytes

_log = structlog.get_logger(__name__)

API = "/v1/tenants/{tenant}/conversations"
PAGES = "/tenants/{tenant}"
COOKIE = "standfast"
LOOK_SECONDS = 0.5
BEAT_SECONDS = 15.0
FOLLOWERS_MAX = 64
QUERY_CHARS_MAX = 128
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
Answer = TypeVar("Answer")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@final
@dataclass
class Site:
    """The pages over one source; `thread` is where the source is asked."""

    source: Source
    tokens: Tokens
    thread: ThreadPoolExecutor

    def __post_init__(self) -> None:
        self._followers = 0
        self._wrong_tokens = WrongTokens()

    def routes(self) -> list[web.RouteDef]:
        """Every path there is."""
        return [
            web.get("/", self._page(self._home)),
            web.post("/sign-in", self._sign_in),
            web.post("/sign-out", self._sign_out),
            web.get(PAGES, self._page(self._list)),
            web.get(f"{PAGES}/conversations/{{conversation}}", self._page(self._shown)),
            web.get(API, self._listed),
            web.get(f"{API}/{{conversation}}/report", self._report),
            web.get(f"{API}/{{conversation}}/events", self._events),
        ]

    # -- who asks -------------------------------------------------------------------------------

    def _holder(self, request: web.Request) -> Holder:
        """Who asks. Raises ProblemRaised, the same for every token that is not valid."""
        if self.tokens.path is None and not _names_this_machine(request.host):
            raise ProblemRaised(Kind.INVALID, place="Host", detail="it names another machine")
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        given = token.strip() if kind.lower() == "bearer" else request.cookies.get(COOKIE)
        holder = self._holder_of(given)
        if holder is None:
            raise self._wrong_tokens.problem(request.remote)
        if Scope.READ not in holder.scopes:
            raise ProblemRaised(Kind.FORBIDDEN)
        return holder

    def _holder_of(self, token: str | None) -> Holder | None:
        fits = token is not None and len(token) <= TOKEN_CHARS_MAX
        return self.tokens.holder(token if fits else None, datetime.now(UTC))

    def _key(self, request: web.Request) -> tuple[str, str]:
        """The conversation to look for, which is none if it belongs to somebody else."""
        holder = self._holder(request)
        tenant, conversation = (request.match_info[name] for name in ("tenant", "conversation"))
        if not _is(TENANT_PATTERN, tenant) or not _is(NAME_PATTERN, conversation):
            raise ProblemRaised(Kind.NO_CONVERSATION)
        return (tenant, conversation if holder.tenant_id in (None, tenant) else NOWHERE)

    def _tenant(self, request: web.Request) -> str:
        """The tenant to look for; of another tenant there is nothing to list."""
        holder = self._holder(request)
        tenant = request.match_info["tenant"]
        if not _is(TENANT_PATTERN, tenant):
            raise ProblemRaised(Kind.NOT_FOUND)
        return tenant if holder.tenant_id in (None, tenant) else NOWHERE

    def _page(self, respond: Handler) -> Handler:
        """A page for people: whoever has no token is asked for one."""

        async def serve(request: web.Request) -> web.StreamResponse:
            try:
                return await respond(request)
            except ProblemRaised as raised:
                if raised.kind is not Kind.UNAUTHORISED:
                    raise
                return _html(lists.sign_in_page(wrong=False), lists.policy(), status=401)

        return serve

    async def _sign_in(self, request: web.Request) -> web.Response:
        _refuse_other_sites(request)
        token = (await request.post()).get("token")
        holder = self._holder_of(token.strip()) if isinstance(token, str) else None
        if holder is None:
            refused = self._wrong_tokens.problem(request.remote)
            if refused.kind is not Kind.UNAUTHORISED:
                raise refused
        if holder is None or Scope.READ not in holder.scopes or self.tokens.path is None:
            return _html(lists.sign_in_page(wrong=True), lists.policy(), status=401)
        response = web.Response(status=303, headers={**_HEADERS, "Location": "/"})
        assert isinstance(token, str)
        response.set_cookie(COOKIE, token.strip(), httponly=True, samesite="Strict")
        return response

    async def _sign_out(self, request: web.Request) -> web.Response:
        _refuse_other_sites(request)
        response = web.Response(status=303, headers={**_HEADERS, "Location": "/"})
        response.del_cookie(COOKIE, httponly=True, samesite="Strict")
        return response

    # -- what is shown --------------------------------------------------------------------------

    async def _home(self, request: web.Request) -> web.Response:
        holder = self._holder(request)
        if holder.tenant_id is not None:
            return _redirect(lists.tenant_path(holder.tenant_id))
        tenants = await self._ask(self.source.tenants)
        if len(tenants) == 1:
            return _redirect(lists.tenant_path(tenants[0][0]))
        return _html(lists.tenants_page(tenants), lists.policy())

    async def _list(self, request: web.Request) -> web.Response:
        tenant, asked = self._tenant(request), _asked(request)
        rows = await self._ask(self.source.conversations, tenant, *_span(asked))
        signed_in = self.tokens.path is not None
        named = request.match_info["tenant"]
        return _html(
            lists.conversations_page(named, asked, rows, signed_in=signed_in), lists.policy()
        )

    async def _shown(self, request: web.Request) -> web.Response:
        data = await self._data(request)
        tenant, conversation = (request.match_info[name] for name in ("tenant", "conversation"))
        live = f"/v1{lists.conversation_path(tenant, conversation)}"
        page = report_page(data, conversation, live=live, home=lists.tenant_path(tenant))
        return _html(page.html.decode(), f"{page.policy}; frame-ancestors 'none'")

    async def _listed(self, request: web.Request) -> web.Response:
        tenant, asked = self._tenant(request), _asked(request)
        rows = await self._ask(self.source.conversations, tenant, *_span(asked))
        shown = [row._asdict() for row in rows[: lists.PAGE_ROWS]]
        more = len(rows) > lists.PAGE_ROWS
        return _json(canonical_bytes({"conversations": shown, "page": asked.page, "more": more}))

    async def _report(self, request: web.Request) -> web.Response:
        return _json(await self._data(request))

    async def _data(self, request: web.Request) -> bytes:
        data = await self._ask(self.source.data, *self._key(request))
        if data is None:
            raise ProblemRaised(Kind.NO_CONVERSATION)
        return data

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Say `grown` whenever the conversation has more than the client knows."""
        key, after = self._key(request), _number(request, "after")
        if await self._ask(self.source.reached, *key) == 0:
            raise ProblemRaised(Kind.NO_CONVERSATION)
        if self._followers >= FOLLOWERS_MAX:
            raise ProblemRaised(Kind.BUSY, retry_s=RETRY_SECONDS)
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        self._followers += 1
        try:
            await self._follow(request, response, key, after)
        finally:
            self._followers -= 1
        return response

    async def _follow(
        self, request: web.Request, response: web.StreamResponse, key: tuple[str, str], after: int
    ) -> None:
        loop = asyncio.get_running_loop()
        said_at = 0.0
        with suppress(ConnectionResetError, ProblemRaised):
            while self._key(request) == key:  # a token may have ended
                reached = await self._ask(self.source.reached, *key)
                if reached > after:
                    told = canonical_bytes({"sequence": reached}).decode()
                    await response.write(f"event: grown\ndata: {told}\n\n".encode())
                    after, said_at = reached, loop.time()
                elif loop.time() - said_at > BEAT_SECONDS:
                    await response.write(b": still here\n\n")
                    said_at = loop.time()
                await asyncio.sleep(LOOK_SECONDS)

    async def _ask(self, question: Callable[..., Answer], *about: object) -> Answer:
        """Ask the source. Raises ProblemRaised; what is wrong with the file is in the log."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self.thread, question, *about)
        except NotKeptError as earlier:
            raise ProblemRaised(Kind.NOT_KEPT) from earlier
        except StoreBusyError as busy:
            raise ProblemRaised(Kind.BEING_WRITTEN, retry_s=RETRY_SECONDS) from busy
        except StoreError as unusable:
            _log.error("store_unusable", problem=str(unusable))
            raise ProblemRaised(Kind.UNUSABLE) from unusable


def _is(pattern: str, id_: str) -> bool:
    return re.fullmatch(pattern.rstrip("$"), id_) is not None


def _names_this_machine(host: str) -> bool:
    """Whether a browser means this machine: a name of another, bound to our address, does not."""
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    return is_loopback(name.strip("[]"))


def _refuse_other_sites(request: web.Request) -> None:
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise ProblemRaised(Kind.FORBIDDEN, detail="another site may not do this")


def _number(request: web.Request, name: str) -> int:
    written = request.query.get(name, "0")
    if not re.fullmatch(r"[0-9]{1,15}", written):
        raise ProblemRaised(Kind.INVALID, place=name, detail="must be a number")
    return int(written)


def _asked(request: web.Request) -> lists.Asked:
    query = request.query.get("q", "")
    if len(query) > QUERY_CHARS_MAX:
        raise ProblemRaised(Kind.INVALID, place="q", detail=f"at most {QUERY_CHARS_MAX} characters")
    return lists.Asked(query, _number(request, "page"))


def _span(asked: lists.Asked) -> tuple[str, int, int]:
    return asked.query, asked.page * lists.PAGE_ROWS, lists.PAGE_ROWS + 1


def _html(text: str, policy: str, status: int = 200) -> web.Response:
    headers = {**_HEADERS, "Content-Security-Policy": policy}
    return web.Response(status=status, text=text, content_type="text/html", headers=headers)


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json", headers=_HEADERS)


def _redirect(path: str) -> web.Response:
    return web.Response(status=303, headers={**_HEADERS, "Location": path})
