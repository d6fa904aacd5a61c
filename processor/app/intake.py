"""Messages between their delivery and their acknowledgement, for the topics of one worker.

Each partition of each topic has a gate; a rebalance throws all of them away, and whatever an old
one still holds can acknowledge nothing. A partition of which too much is in hand is not fetched
from until half of it is done: fetching stops, never the taking of what was fetched, because all
topics of a worker come through one loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeAlias, final

from processor.app.ack_gate import AckGate
from processor.app.messages import Delivered

Place: TypeAlias = tuple[str, int]
"""A topic and a partition."""


class Flow(Protocol):
    """Where messages come from."""

    def stop(self, place: Place) -> None:
        """Fetch no more from it."""

    def resume(self, place: Place) -> None:
        """Fetch from it again."""

    def acknowledge(self, place: Place, offset: int) -> None:
        """The message, and all before it, are done with."""


@final
class Intake:
    """The gates of all partitions; `in_hand_max` bounds what one of them holds.

    `on_acknowledged` is told how many messages of a topic were acknowledged.
    """

    def __init__(
        self,
        flow: Flow,
        in_hand_max: int,
        clock: Callable[[], float] = time.monotonic,
        on_acknowledged: Callable[[str, int], None] = lambda _, __: None,
    ) -> None:
        self._flow = flow
        self._on_acknowledged = on_acknowledged
        self._in_hand_max = in_hand_max
        self._clock = clock
        self._gates: dict[Place, AckGate] = {}
        self._stopped: set[Place] = set()

    def take(self, message: Delivered) -> Callable[[], None] | None:
        """Take a message in; what to call when it is done with, or None if it is in hand already.

        Calling after a rebalance does nothing.
        """
        place = (message.topic, message.partition)
        gate = self._gates.setdefault(place, AckGate())
        if not gate.take(message.offset, self._clock()):
            return None
        if len(gate) >= self._in_hand_max and place not in self._stopped:
            self._stopped.add(place)
            self._flow.stop(place)

        def done() -> None:
            if self._gates.get(place) is gate:
                self._finish(place, gate, message.offset)

        return done

    def _finish(self, place: Place, gate: AckGate, offset: int) -> None:
        released = gate.finish(offset)
        if released:
            self._flow.acknowledge(place, released[-1])
            self._on_acknowledged(place[0], len(released))
        if place in self._stopped and 2 * len(gate) <= self._in_hand_max:
            self._stopped.remove(place)
            self._flow.resume(place)

    def forget(self) -> None:
        """The partitions are assigned anew: nothing of what is in hand counts any more."""
        self._gates.clear()
        self._stopped.clear()

    def age_s(self, place: Place, offset: int) -> float | None:
        """How long a message has been in hand; None if it is not in hand here."""
        gate = self._gates.get(place)
        return None if gate is None else gate.age_s(offset, self._clock())

    def in_hand(self) -> dict[str, int]:
        """How many messages of each topic are between delivery and acknowledgement."""
        counts: dict[str, int] = {}
        for (topic, _), gate in self._gates.items():
            counts[topic] = counts.get(topic, 0) + len(gate)
        return counts

    def oldest_age_s(self) -> dict[str, float]:
        """How long the oldest of them has been in hand, by topic."""
        now = self._clock()
        ages: dict[str, float] = {}
        for (topic, _), gate in self._gates.items():
            ages[topic] = max(ages.get(topic, 0.0), gate.oldest_age_s(now))
        return ages
