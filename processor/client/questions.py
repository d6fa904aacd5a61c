"""What is asked of a gate: a request made from plain values, and what its reply means.

Nothing here waits or sends. A reply settles a question, or says that it may be asked again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, final
from urllib.parse import quote, urlencode

from .answers import (
    AlertPage,
    Checked,
    Outcome,
    read_alerts,
    read_checked,
    read_problem,
)
from .errors import RefusedError, UnreadableError

TENANT = re.compile(r"[A-Za-z0-9-]{1,64}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
RECORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@'/-]{0,127}")
WAIT_MS_MAX = 30_000
"""What a gate waits at most; who has more time asks again."""
START = "0.0"
"""Where the alerts of a conversation begin."""
_RETRIED = frozenset({408, 429, 502, 503, 504})

Said = TypeVar("Said", covariant=True)


@final
@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of a draft, and the records that it rests on."""

    text: str
    records: tuple[str, ...] = ()

    def __init__(self, text: str, *records: str) -> None:
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "records", records)


@final
@dataclass(frozen=True, slots=True)
class Request:
    """What is sent; the token is added by whoever sends it."""

    method: str
    path: str
    body: bytes | None = None


@final
@dataclass(frozen=True, slots=True)
class Reply:
    """What came back; `retry_after` as the header says it."""

    status: int
    body: bytes
    retry_after: str | None = None


@final
@dataclass(frozen=True, slots=True)
class Lost:
    """Nothing that can be read came back; `is_final` if nothing would, were it asked again."""

    problem: str
    is_final: bool = False


@final
@dataclass(frozen=True, slots=True)
class Settled(Generic[Said]):
    """The gate has answered."""

    said: Said


@final
@dataclass(frozen=True, slots=True)
class Again(Generic[Said]):
    """It may be asked again; if there is no time for that, `said` is all that there is."""

    said: Said | Lost
    after_seconds: float = 0.0


@final
@dataclass(frozen=True, slots=True)
class Failed:
    """There is no answer, and asking again would not bring one."""

    lost: Lost


class Question(Protocol[Said]):
    """Makes requests and reads replies."""

    def request(self, seconds: float) -> Request:
        """What to send if there is so much time left."""

    def read(self, reply: Reply) -> Said:
        """An answer with status 200. Raises UnreadableError."""

    def is_settled(self, said: Any) -> bool:
        """Whether more time would not change it."""


def judge(question: Question[Said], reply: Reply | Lost) -> Settled[Said] | Again[Said] | Failed:
    """What a reply means. Raises RefusedError where the request is at fault."""
    if isinstance(reply, Lost):
        return Failed(reply) if reply.is_final else Again(reply)
    if reply.status == 200:
        try:
            said = question.read(reply)
        except UnreadableError as wrong:
            return Failed(Lost(str(wrong)))
        return Settled(said) if question.is_settled(said) else Again(said)
    type_, detail, place = read_problem(reply.status, reply.body)
    lost = Lost(f"{reply.status} {type_}: {detail}")
    if reply.status in _RETRIED:
        return Again(lost, after_seconds=_seconds(reply.retry_after))
    if 400 <= reply.status < 500:
        raise RefusedError(reply.status, type_, detail, place)
    return Failed(lost)


def _seconds(retry_after: str | None) -> float:
    """A number of seconds; a date is not understood, and then our own pause holds."""
    written = (retry_after or "").strip()
    return float(written) if re.fullmatch(r"[0-9]{1,6}", written) else 0.0


def _conversation(tenant: str, conversation: str) -> str:
    _known(TENANT, "tenant", tenant)
    _known(NAME, "conversation", conversation)
    return f"/v1/tenants/{quote(tenant, safe='')}/conversations/{quote(conversation, safe='')}"


def _known(pattern: re.Pattern[str], name: str, value: str) -> None:
    if not pattern.fullmatch(value):
        raise ValueError(f"{name}: {value!r} is no such name")


def wait_ms(seconds: float) -> int:
    """How long the gate may wait if the answer must be here in so many seconds."""
    return max(0, min(WAIT_MS_MAX, int(1_000 * (seconds - min(0.5, seconds / 4)))))


@final
@dataclass(frozen=True, slots=True)
class CheckQuestion:
    """A draft: claims, or a text to be read."""

    path: str
    fields: Mapping[str, Any]

    def request(self, seconds: float) -> Request:
        """A check; it waits for as long as there is time."""
        body = {**self.fields, "wait_ms": wait_ms(seconds)}
        return Request("POST", self.path, json.dumps(body).encode())

    def read(self, reply: Reply) -> Checked:
        """The verdicts."""
        return read_checked(reply.body)

    def is_settled(self, said: Checked) -> bool:
        """Whether there is a verdict."""
        return said.outcome is not Outcome.PENDING


def check_question(
    tenant: str,
    conversation: str,
    claims: Sequence[Claim] | None,
    text: str,
    *,
    record: bool,
    after: str | None,
    candidate_id: str | None,
) -> CheckQuestion:
    """A check of these claims, or of a text. Raises ValueError that names the argument at fault."""
    if claims is None and not text:
        raise ValueError("claims or text: one of them must be given")
    fields: dict[str, Any] = {"record": record, "text": text}
    if claims is not None:
        fields["claims"] = [_claim(claim) for claim in claims]
    for name, id_ in (("after", after), ("candidate_id", candidate_id)):
        if id_ is not None:
            _known(NAME, name, id_)
            fields[name] = id_
    return CheckQuestion(f"{_conversation(tenant, conversation)}/check", fields)


def _claim(claim: Claim) -> dict[str, Any]:
    for record in claim.records:
        _known(RECORD, "claims", record)
    return {"text": claim.text, **({"records": claim.records} if claim.records else {})}


@final
@dataclass(frozen=True, slots=True)
class AlertsQuestion:
    """The alerts of a conversation behind a place in its log."""

    path: str
    since: str

    def request(self, seconds: float) -> Request:
        """A page of them."""
        return Request("GET", f"{self.path}?{urlencode({'since': self.since})}")

    def read(self, reply: Reply) -> AlertPage:
        """The page."""
        return read_alerts(reply.body)

    def is_settled(self, said: AlertPage) -> bool:
        """Always: an empty page is an answer too."""
        return True


def alerts_question(tenant: str, conversation: str, since: str) -> AlertsQuestion:
    """The alerts since a place. Raises ValueError."""
    return AlertsQuestion(f"{_conversation(tenant, conversation)}/alerts", since)
