"""What can go wrong for whoever asks a gate. No error holds a token, or a request that has one."""

from __future__ import annotations

from typing import final


class GuardError(Exception):
    """The base of everything that a guard raises about a gate."""


@final
class RefusedError(GuardError):
    """The gate refuses the request, and would refuse it again: problem details (RFC 9457).

    `type` is the problem's URN, `detail` says what is wrong, `place` which field is at fault.
    """

    def __init__(self, status: int, type_: str, detail: str, place: str | None) -> None:
        at = "" if place is None else f" ({place})"
        super().__init__(f"the gate refuses: {status} {type_}: {detail}{at}")
        self.status = status
        self.type = type_
        self.detail = detail
        self.place = place


@final
class UnreadableError(GuardError):
    """What came is no answer of a gate; the text names the field at fault."""


@final
class AlertsMissedError(GuardError):
    """The worker began from a checkpoint and does not have all alerts since the place asked for.

    A stream that starts at `since` goes on with those that it has.
    """

    def __init__(self, since: str) -> None:
        super().__init__(f"the worker does not have all alerts up to {since}")
        self.since = since


@final
class UnavailableError(GuardError):
    """The gate could not be asked in time; the text says what came instead of an answer."""
