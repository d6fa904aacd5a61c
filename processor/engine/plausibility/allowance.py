"""What the questions of one turn may take of the model's bound on steps.

A view of the log - a perspective, or what somebody believes in it - costs what its states take from
the first entry on. A question pays for the part of its views that nobody has paid for: what was
there when the turn began is free, because caches hold it or are filled once; what the turn appends,
and what it takes back before that, is paid for by the first question that looks at it. So a turn
costs what it changes, however long the log is, and what is charged depends on no cache.

The whole cost of all views of a turn has a bound of its own: that is the time after which a process
that has just started knows as much as one that was there all the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from processor.engine.plausibility.bounds import BoundExceeded, Bounds, Meter
from processor.engine.plausibility.perspective import View


@final
class Allowance:
    """The steps of one turn. `meter` counts what is charged.

    Places are serial numbers of the log: a view is paid up to, and without, the entry at one.
    """

    def __init__(self, bounds: Bounds, length: int) -> None:
        """For a turn that begins with so many entries in the log."""
        self.meter = Meter(min(bounds.turn_steps, bounds.steps))
        self._limit = bounds.steps
        self._settled = length
        self._paid: dict[View, int] = {}
        self._costs: dict[View, int] = {}

    def paid_up_to(self, view: View) -> int:
        """The place up to which the view is paid for."""
        return self._paid.get(view, self._settled)

    def pay(self, view: View, length: int, cost: int, paid: int) -> None:
        """Pay for a view of a log of some length: its whole cost, of which a part is paid.

        Raises BoundExceeded (steps).
        """
        self._paid[view] = length
        self._costs[view] = cost
        self.meter.charge(cost - paid)
        if sum(self._costs.values()) > self._limit:
            raise BoundExceeded("steps", self._limit)

    def cut(self, serial: int) -> None:
        """The log has changed from this entry on: nobody has paid for what follows."""
        if serial < self._settled:
            self._settled = serial
        for view, length in self._paid.items():
            if serial < length:
                self._paid[view] = serial

    @contextmanager
    def aside(self, settled: int | None = None) -> Iterator[None]:
        """For questions to another log, of which only the entries before `settled` are the same.

        What they cost stays charged; None leaves as much paid as is.
        """
        kept = self._settled, self._paid, self._costs
        self._paid, self._costs = self._paid.copy(), self._costs.copy()
        if settled is not None:
            self._settled, self._paid = settled, {}
        try:
            yield
        finally:
            self._settled, self._paid, self._costs = kept
