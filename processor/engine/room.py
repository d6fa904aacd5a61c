"""How many ids the derived events of one log event tell, each of them and together.

A list of ids is as long as the conversation is large, and a small utterance can ask for hundreds of
them. What is told is bounded, so that an event fits its topic; what is true is not: outcomes,
standings and the answers to queries on the state do not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from processor.engine.failing import Failures
from schemas.derived import Failure

EVENT_IDS_MAX = 22_000
"""With the longest ids this is just below three megabytes; a topic takes four."""
TOGETHER_IDS_MAX = 250_000
_FAILURE_IDS = 4
"""What a failure takes beside its path, in ids."""


@final
class Room:
    """What may still be told of one log event; `begin` with each derived event."""

    def __init__(self) -> None:
        self._together = TOGETHER_IDS_MAX
        self._here = 0

    def begin(self) -> None:
        """The next derived event."""
        self._here = min(EVENT_IDS_MAX, self._together)

    def ids(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        """Those that there is room for, the first first."""
        told = ids if len(ids) <= self._here else ids[: self._here]
        self._take(len(told))
        return told

    def failures(self, found: Failures) -> Failures:
        """Those that there is room for, with their paths; of the first at least the path's ends."""
        for told, failure in enumerate(found.listed):
            size = len(failure.path) + _FAILURE_IDS
            if size <= self._here:
                self._take(size)
            elif told == 0:
                is_all = found.complete and len(found.listed) == 1
                return Failures((_with_ends(failure),), complete=is_all)
            else:
                return Failures(found.listed[:told], complete=False)
        return found

    def all_of(self, lists: Sequence[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], bool]:
        """Each as far as there is room, the first list first; and whether that is everything."""
        told = [self.ids(each) for each in lists]
        return told, all(len(some) == len(all_) for some, all_ in zip(told, lists, strict=True))

    def _take(self, count: int) -> None:
        self._here -= count
        self._together -= count


def _with_ends(failure: Failure) -> Failure:
    """The same with the first and the last of its path."""
    path = failure.path
    between = max(0, len(path) - 2)
    return failure.model_copy(
        update={
            "path": path if between == 0 else (path[0], path[-1]),
            "path_omitted": failure.path_omitted + between,
        }
    )
