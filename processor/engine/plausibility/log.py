"""The ordered log of updates: the state of M.

Everything that changes the log lives here: appending, contraction by a record, and taking changes
back. An entry keeps its serial number, its place from 0, for good; a contracted entry leaves a gap.
Every operation costs as much as what it changes, however long the log is.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple, final

from processor.engine.plausibility.update import Update


@final
class Mark(NamedTuple):
    """A moment of the log to go back to: its length, and how many entries had been contracted."""

    length: int
    contracted: int


@final
class UpdateLog:
    """The updates in order, by ascending turn.

    `last_turn` is the turn of the last entry, whether contracted or not; 0 if there is none.
    """

    def __init__(self) -> None:
        self.entries: list[Update | None] = []
        self._of_tag: dict[str, int | list[int]] = {}  # nearly every record has a single entry
        self._turns = array("q")
        self._turn_starts = array("q")
        self.last_turn = 0
        self._contracted: list[tuple[int, Update]] = []
        self._lowest_change = 0

    def append(self, update: Update) -> None:
        """Add an update as the last one."""
        serial = len(self.entries)
        self.entries.append(update)
        for tag in update.tags:
            earlier = self._of_tag.get(tag)
            if earlier is None:
                self._of_tag[tag] = serial
            elif isinstance(earlier, int):
                self._of_tag[tag] = [earlier, serial]
            else:
                earlier.append(serial)
        if self.last_turn != update.turn or not self._turns:
            assert self.last_turn <= update.turn, "turns only go on"
            self.last_turn = update.turn
            self._turns.append(update.turn)
            self._turn_starts.append(serial)

    def contract(self, record: str) -> tuple[Update, ...]:
        """Drop every entry that stands for the record, and return them in order."""
        dropped: list[Update] = []
        serials = self._of_tag.get(record, ())
        for serial in (serials,) if isinstance(serials, int) else serials:
            update = self.entries[serial]
            if update is not None:
                self.entries[serial] = None
                self._contracted.append((serial, update))
                self._lowest_change = min(self._lowest_change, serial)
                dropped.append(update)
        return tuple(dropped)

    def updates(self) -> Iterator[Update]:
        """The entries in order, without those contracted."""
        return (update for update in self.entries if update is not None)

    def of_turn(self, turn: int) -> tuple[Update, ...]:
        """The entries of one turn in order, without those contracted."""
        if turn == self.last_turn and self._turns:
            found = self.entries[self._turn_starts[-1] :]
        else:
            place = bisect_left(self._turns, turn)
            if place == len(self._turns) or self._turns[place] != turn:
                return ()
            found = self.entries[self._turn_starts[place] : self._turn_starts[place + 1]]
        return tuple([update for update in found if update is not None])

    def mark(self) -> Mark:
        """This moment."""
        return Mark(len(self.entries), len(self._contracted))

    def rollback(self, mark: Mark) -> None:
        """Take back what was appended and contracted since the mark."""
        while len(self._contracted) > mark.contracted:
            serial, update = self._contracted.pop()
            self.entries[serial] = update
            self._lowest_change = min(self._lowest_change, serial)
        while len(self.entries) > mark.length:
            self._remove_last()
        self._lowest_change = min(self._lowest_change, mark.length)

    def settle(self) -> int:
        """The lowest serial number whose entry may differ from what it was at the last call."""
        lowest = self._lowest_change
        self._lowest_change = len(self.entries)
        return lowest

    def _remove_last(self) -> None:
        update = self.entries.pop()
        assert update is not None, "what was contracted since the mark is back in its place"
        for tag in update.tags:
            serials = self._of_tag[tag]
            if isinstance(serials, int) or len(serials) == 1:
                del self._of_tag[tag]
            else:
                serials.pop()
        if self._turn_starts[-1] == len(self.entries):
            self._turns.pop()
            self._turn_starts.pop()
            self.last_turn = self._turns[-1] if self._turns else 0
