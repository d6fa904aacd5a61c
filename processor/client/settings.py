"""What a guard is told once: where the gate is, who asks, and what to make of no verdict."""

from __future__ import annotations

import random
import re
import time
import uuid
from collections.abc import Collection, Generator, Sequence
from typing import Literal, TypeAlias, final, get_args
from urllib.parse import urlsplit

from .answers import UNDECIDED, Answer, Outcome
from .breaker import Breaker
from .exchange import Came, Give, Step, Terms, ask, follow
from .questions import Claim, Lost, alerts_question, check_question

Fail: TypeAlias = Literal["open", "closed"]
ALLOWED = frozenset({Outcome.GROUNDED, Outcome.NO_CLAIMS})
BODY_BYTES_MAX = 32 * 1024 * 1024
_ADDRESS = re.compile(r"[\x21-\x7e]+")
_TOKEN = re.compile(r"[\x21-\x7e]{1,512}")


@final
class Token:
    """A bearer token that shows itself to nobody but the gate."""

    __slots__ = ("_written",)

    def __init__(self, written: str) -> None:
        if not _TOKEN.fullmatch(written):
            raise ValueError("token: it is empty, too long, or has characters that no token has")
        self._written = written

    def header(self) -> dict[str, str]:
        """The header that it goes into."""
        return {"Authorization": f"Bearer {self._written}"}

    def __repr__(self) -> str:
        return "Token(...)"

    def __reduce__(self) -> str:
        raise TypeError("a token is not written anywhere")


class GuardSettings:
    """What a guard with threads and one with asyncio have in common: everything but the waiting.

    `address` is that of any worker, `fail` what a draft is without a verdict in `seconds` (all
    attempts together): "open" allows it, "closed" does not. `allow` are the outcomes that allow a
    draft. Answers above `body_bytes_max` bytes are not read. Raises ValueError that names the
    argument at fault.
    """

    def __init__(
        self,
        address: str,
        tenant: str,
        token: str,
        *,
        fail: Fail,
        seconds: float = 5.0,
        allow: Collection[Outcome | str] = ALLOWED,
        breaker: Breaker | None = None,
        body_bytes_max: int = BODY_BYTES_MAX,
    ) -> None:
        if fail not in get_args(Fail):
            raise ValueError('fail: "open" or "closed"')
        if not 0 < seconds < float("inf"):
            raise ValueError("seconds: more than none")
        self.address = _origin(address)
        self.tenant = tenant
        self.seconds = seconds
        self.body_bytes_max = body_bytes_max
        self._fail = fail
        self._allow = frozenset(map(Outcome, allow))
        if self._allow & UNDECIDED:
            raise ValueError("allow: it is `fail` that says what holds without a verdict")
        self._token = Token(token)
        self._breaker = breaker or Breaker()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r}, {self.tenant!r}, fail={self._fail!r})"

    def _terms(self) -> Terms:
        return Terms(self.seconds, self._breaker, time.monotonic, random.random)

    def _asked(
        self,
        conversation: str,
        claims: Sequence[Claim] | None,
        text: str,
        after: str | None,
        candidate_id: str | None,
        *,
        record: bool,
    ) -> Generator[Step, Came, Answer]:
        """A check from its arguments to its answer.

        A draft that is recorded has its name before it is sent: asked again, it is the same one.
        """
        if record and candidate_id is None:
            candidate_id = f"draft-{uuid.uuid4().hex}"
        question = check_question(
            self.tenant,
            conversation,
            claims,
            text,
            record=record,
            after=after,
            candidate_id=candidate_id,
        )
        said = yield from ask(question, self._terms())
        if isinstance(said, Lost):
            allowed = self._fail == "open"
            return Answer(Outcome.UNAVAILABLE, allowed, candidate_id, problem=said.problem)
        undecided = said.outcome in UNDECIDED
        return Answer(
            said.outcome,
            self._fail == "open" if undecided else said.outcome in self._allow,
            said.candidate_id,
            said.recorded,
            said.reason,
            said.verdicts,
        )

    def _followed(
        self, conversation: str, since: str, every_seconds: float | None
    ) -> Generator[Step | Give, Came, None]:
        question = alerts_question(self.tenant, conversation, since)
        return follow(question, self._terms(), every_seconds)


def _origin(address: str) -> str:
    """Scheme, host and path; neither a password nor a query, which would stand in logs."""
    try:
        parts = urlsplit(address)
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # which would repeat what was given
        is_server = False
    if not is_server or not _ADDRESS.fullmatch(address):
        raise ValueError("address: not that of a server, as in https://standfast.example")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError("address: it holds more than scheme, host, port and path")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
