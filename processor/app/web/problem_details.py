"""Problems (RFC 9457): every answer that is no answer has this form, whoever gives it.

What a client may be told is written here, once. Nothing of an exception's text gets out, except
where a field of the request is at fault.
"""

from __future__ import annotations

from enum import Enum
from http import HTTPStatus
from typing import NamedTuple, final

from aiohttp import web
from aiohttp.typedefs import Handler

from schemas.http import PROBLEM_TYPE, ProblemDetails
from schemas.wire import WireError, canonical_bytes

RETRY_SECONDS = 1
REBALANCE_RETRY_SECONDS = 2


@final
class _What(NamedTuple):
    status: int
    detail: str


class Kind(Enum):
    """What can be wrong; the name, with dashes, is the end of the problem's type."""

    INVALID = _What(400, "the request is not valid")
    UNAUTHORISED = _What(401, "a valid bearer token is needed")
    FORBIDDEN = _What(403, "the token does not allow this")
    NOT_FOUND = _What(404, "there is no such resource")
    NO_CONVERSATION = _What(404, "there is no such conversation, or it has not reached that turn")
    NOT_KEPT = _What(404, "the worker began from a checkpoint and does not have that turn")
    NO_RECORD = _What(404, "the conversation has no such record")
    NOT_ALLOWED = _What(405, "the resource has no such method")
    TOO_SLOW = _What(408, "the body did not come in time")
    ID_REUSED = _What(409, "this candidate_id was used before with other content")
    TOO_LARGE = _What(413, "the request is too large")
    UNSUPPORTED = _What(415, "the body must be application/json")
    TOO_MANY = _What(429, "the tenant sends more requests than it may")
    TOO_MANY_WRONG_TOKENS = _What(429, "too many requests without a valid token came from there")
    FAILED = _What(500, "the request failed; the log of the worker says why")
    KEPT_IN_THE_CLEAR = _What(409, "there is no key file, so nothing that was said can be erased")
    KEYS_AWAY = _What(503, "the keys are away; nothing was erased")
    REBALANCING = _What(503, "nobody can be asked about the conversation just now")
    BUSY = _What(503, "too many requests wait")
    NOT_FOLDED_YET = _What(503, "the utterance that was to be waited for is not folded yet")
    BEING_WRITTEN = _What(503, "another process is writing the store just now")
    UNUSABLE = _What(500, "what was stored of this cannot be used; the log of the server says why")
    OTHER = _What(0, "the request cannot be served")

    @property
    def slug(self) -> str:
        """The end of the problem's type."""
        return self.name.lower().replace("_", "-")


class ProblemRaised(Exception):  # noqa: N818 - it says what happened
    """Ends a request with a problem; `retry_s` asks the client to wait."""

    def __init__(
        self,
        kind: Kind,
        *,
        detail: str | None = None,
        place: str | None = None,
        retry_s: int | None = None,
    ) -> None:
        super().__init__(kind.name)
        self.kind = kind
        self.detail = detail
        self.place = place
        self.retry_s = retry_s

    def response(self) -> web.Response:
        """The answer to the client."""
        headers = {} if self.retry_s is None else {"Retry-After": str(self.retry_s)}
        if self.kind is Kind.UNAUTHORISED:
            headers["WWW-Authenticate"] = "Bearer"
        return problem_response(self.kind, detail=self.detail, place=self.place, headers=headers)


def invalid(error: WireError) -> ProblemRaised:
    """A field or parameter at fault."""
    return ProblemRaised(Kind.INVALID, detail=error.problem, place=error.place or None)


def rebalancing() -> ProblemRaised:
    """Nobody can be asked now; soon somebody can."""
    return ProblemRaised(Kind.REBALANCING, retry_s=REBALANCE_RETRY_SECONDS)


def problem_response(
    kind: Kind,
    *,
    status: int | None = None,
    detail: str | None = None,
    place: str | None = None,
    headers: dict[str, str] | None = None,
) -> web.Response:
    """A problem as a response."""
    problem = ProblemDetails(
        type=f"urn:standfast:problem:{kind.slug}",
        title=HTTPStatus(status or kind.value.status).phrase,
        status=status or kind.value.status,
        detail=detail or kind.value.detail,
        place=place,
    )
    return web.Response(
        status=problem.status,
        body=canonical_bytes(problem),
        content_type=PROBLEM_TYPE,
        headers=headers,
    )


_KINDS = {404: Kind.NOT_FOUND, 405: Kind.NOT_ALLOWED, 413: Kind.TOO_LARGE, 400: Kind.INVALID}


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give every refusal the form of a problem; what fails otherwise ends in the connection."""
    try:
        return await handler(request)
    except ProblemRaised as raised:
        return raised.response()
    except web.HTTPException as refused:
        allow = refused.headers.get("Allow")
        return problem_response(
            _KINDS.get(refused.status, Kind.OTHER),
            status=refused.status,
            headers=None if allow is None else {"Allow": allow},
        )
