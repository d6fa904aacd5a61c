"""Waiting for what another process or thread will have done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

WAIT_SECONDS_MAX = 180.0
"""How long a test takes that fails, so it may be much."""
LOOK_SECONDS = 0.1

Found = TypeVar("Found")


def wait_until(
    look: Callable[[], Found],
    seconds_max: float = WAIT_SECONDS_MAX,
    told: Callable[[], object] = lambda: "it did not come to that",
) -> Found:
    """Look until there is something; what there is. Fails with what `told` says."""
    deadline = time.monotonic() + seconds_max
    while not (found := look()):
        assert time.monotonic() < deadline, told()
        time.sleep(LOOK_SECONDS)
    return found
