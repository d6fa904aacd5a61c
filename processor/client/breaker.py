"""The breaker: after failures in a row a gate is not asked for a while, then by one request.

Time comes in as an argument. A request is admitted, and then exactly one of `succeeded`, `failed`
and `abandoned` is said of it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import final


@final
@dataclass
class Breaker:
    """Shared by the requests of one guard, which may be made by several threads.

    It opens after `failures_max` failures in a row and lets one request through when it was open
    for `open_seconds`; that one closes it or opens it again.
    """

    failures_max: int = 5
    open_seconds: float = 10.0
    _failures: int = 0
    _opened_at: float | None = None
    _is_probing: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def admit(self, now: float) -> bool:
        """Whether a request may be made now."""
        with self._lock:
            if self._opened_at is None:
                return True
            if self._is_probing or now < self._opened_at + self.open_seconds:
                return False
            self._is_probing = True
            return True

    def succeeded(self) -> None:
        """The gate answered."""
        with self._lock:
            self._failures = 0
            self._opened_at = None
            self._is_probing = False

    def failed(self, now: float) -> None:
        """It did not, or said that it cannot."""
        with self._lock:
            self._failures += 1
            self._is_probing = False
            if self._opened_at is not None or self._failures >= self.failures_max:
                self._opened_at = now

    def abandoned(self) -> None:
        """Whoever asked went away before there was an answer, which says nothing of the gate."""
        with self._lock:
            self._is_probing = False
