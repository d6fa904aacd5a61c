"""Asks a standfast gate whether what a model is about to say still stands.

`Guard` blocks, `AsyncGuard` does not; both decide the same. Installed, this is `standfast.client`.
"""

from .answers import Alert, Answer, Failure, Outcome, Verdict
from .breaker import Breaker
from .errors import (
    AlertsMissedError,
    GuardError,
    RefusedError,
    UnavailableError,
)
from .guards import AsyncGuard, Guard
from .questions import START, Claim

__all__ = [
    "START",
    "Alert",
    "AlertsMissedError",
    "Answer",
    "AsyncGuard",
    "Breaker",
    "Claim",
    "Failure",
    "Guard",
    "GuardError",
    "Outcome",
    "RefusedError",
    "UnavailableError",
    "Verdict",
]
