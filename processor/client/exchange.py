"""Asking until there is an answer or no time: retries, the breaker, one deadline for everything.

Both are generators that do nothing themselves. They yield what is to be done (Send, Pause, Give)
and are sent what came of it, so a guard with threads and one with asyncio share every decision.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, final

from .answers import Alert
from .breaker import Breaker
from .errors import AlertsMissedError, UnavailableError
from .questions import (
    Again,
    AlertsQuestion,
    Failed,
    Lost,
    Question,
    Reply,
    Request,
    Settled,
    judge,
)

Said = TypeVar("Said")

PAUSE_SECONDS = 0.1
PAUSE_SECONDS_MAX = 5.0
ROUND_TRIP_SECONDS = 0.1
"""With less time left nothing is asked again: it would only look as if the gate were slow."""


@final
@dataclass(frozen=True, slots=True)
class Send:
    """Send this and come back with a Reply, or Lost, within so many seconds."""

    request: Request
    seconds: float


@final
@dataclass(frozen=True, slots=True)
class Pause:
    """Do nothing for so many seconds."""

    seconds: float


@final
@dataclass(frozen=True, slots=True)
class Give:
    """Hand this to whoever reads the stream."""

    alert: Alert


Step: TypeAlias = Send | Pause
Came: TypeAlias = Reply | Lost | None


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """What an exchange keeps to; `clock` in seconds, `chance` draws from 0 to 1."""

    seconds: float
    breaker: Breaker
    clock: Callable[[], float]
    chance: Callable[[], float]


def ask(question: Question[Said], terms: Terms) -> Generator[Step, Came, Said | Lost]:
    """The answer, or what there was instead of one. Raises RefusedError."""
    deadline = terms.clock() + terms.seconds
    attempt = 0
    heard: Said | Lost = Lost("there was no time to ask")
    while (left := deadline - terms.clock()) > 0:
        if not terms.breaker.admit(terms.clock()):
            return Lost("the breaker is open: the gate did not answer before")
        came = yield from _send(question.request(left), left, terms)
        judged = judge(question, came)
        if isinstance(judged, Settled):
            return judged.said
        if isinstance(judged, Failed):
            return judged.lost
        heard = judged.said
        pause = _pause(judged, attempt, terms.chance())
        if terms.clock() + pause + ROUND_TRIP_SECONDS >= deadline:
            break
        yield Pause(pause)
        attempt += 1
    return heard


def _send(request: Request, seconds: float, terms: Terms) -> Generator[Step, Came, Reply | Lost]:
    """Send once, and tell the breaker how it went, also if whoever asked went away."""
    breaker, is_told = terms.breaker, False
    try:
        came = yield Send(request, seconds)
        assert came is not None, "what is sent comes to something"
        is_told = True
        if isinstance(came, Lost) or came.status >= 500:
            breaker.failed(terms.clock())
        else:
            breaker.succeeded()
        return came
    finally:
        if not is_told:
            breaker.abandoned()


def _pause(judged: Again[Said], attempt: int, drawn: float) -> float:
    """As long as the gate asks for, and a random time that doubles with each attempt."""
    most = min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * 2.0 ** min(attempt, 10))
    return judged.after_seconds + most * (0.5 + 0.5 * drawn)


def follow(
    question: AlertsQuestion, terms: Terms, every_seconds: float | None
) -> Generator[Step | Give, Came, None]:
    """Alert by alert, as they come; without `every_seconds` those that are there.

    Who follows waits for a gate that is away; else it raises UnavailableError. Raises
    AlertsMissedError and RefusedError.
    """
    while True:
        page = yield from ask(question, terms)
        if isinstance(page, Lost):
            if every_seconds is None:
                raise UnavailableError(page.problem)
            yield Pause(max(every_seconds, PAUSE_SECONDS_MAX * terms.chance()))
            continue
        if not page.is_whole:
            raise AlertsMissedError(page.since)
        for alert in page.alerts:
            yield Give(alert)
        question = AlertsQuestion(question.path, page.since)
        if page.is_last:
            if every_seconds is None:
                return
            yield Pause(every_seconds)
