"""The acknowledgement gate: messages of a partition are let go in the order of their offsets.

Everything that decides which message may be acknowledged lives here. A consumer that is told of
finished messages as they finish can commit past one that is still in hand; so a message is released
when it and all before it are finished, and not earlier. The gate knows nothing of a broker: a
message is its offset, and time is an argument.
"""

from __future__ import annotations

from collections import deque
from typing import final


@final
class _InHand:
    """A message between its delivery and its release."""

    __slots__ = ("arrived", "is_finished", "offset")

    def __init__(self, offset: int, arrived: float) -> None:
        self.offset = offset
        self.arrived = arrived
        self.is_finished = False


@final
class AckGate:
    """The messages in hand of one partition, in one epoch.

    `len(gate)` counts them, finished or not: those finished behind an unfinished one are the price
    of the order, and the bound on what is taken in covers them too.
    """

    def __init__(self) -> None:
        self._in_hand: deque[_InHand] = deque()
        self._by_offset: dict[int, _InHand] = {}

    def __len__(self) -> int:
        return len(self._in_hand)

    def take(self, offset: int, now: float) -> bool:
        """Take in a delivered message; False, and nothing is done, if it was delivered before.

        Offsets come in ascending order, with gaps where the broker has none to deliver. A broker
        that delivers again what was not committed starts at or below what is in hand.
        """
        if self._in_hand and offset <= self._in_hand[-1].offset:
            return False
        taken = _InHand(offset, now)
        self._in_hand.append(taken)
        self._by_offset[offset] = taken
        return True

    def finish(self, offset: int) -> list[int]:
        """A message is done with; those that may be acknowledged now, in their order."""
        self._by_offset[offset].is_finished = True
        released: list[int] = []
        while self._in_hand and self._in_hand[0].is_finished:
            done = self._in_hand.popleft()
            del self._by_offset[done.offset]
            released.append(done.offset)
        return released

    def unfinished(self) -> int:
        """How many of the messages in hand are still being worked on."""
        return sum(not each.is_finished for each in self._in_hand)

    def age_s(self, offset: int, now: float) -> float | None:
        """How long a message has been in hand; None if it is not."""
        taken = self._by_offset.get(offset)
        return None if taken is None else now - taken.arrived

    def oldest_age_s(self, now: float) -> float:
        """How long the message that holds the others back has been in hand; 0 if there is none."""
        return now - self._in_hand[0].arrived if self._in_hand else 0.0
