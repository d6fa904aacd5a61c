"""The ordered log of updates: the state of M.

Everything that changes the log lives here: appending, contraction by a record, and taking changes
back. An entry keeps its serial number, its place from 0, for good; a contracted entry leaves a gap.
Every operation costs as much as what it changes, however long the log is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar, final

from processor.engine.plausibility.formula import Atom
from processor.engine.plausibility.update import Update, is_explicit

Key = TypeVar("Key", str, int)


@final
class Mark(NamedTuple):
    """A moment of the log to go back to: its length, and how many entries had been contracted."""

    length: int
    contracted: int


@final
class UpdateLog:
    """The updates in order. `explicit` counts those with a formula that is no literal."""

    def __init__(self) -> None:
        self.entries: list[Update | None] = []
        self.explicit = 0
        self._of_tag: dict[str, list[int]] = {}
        self._of_turn: dict[int, list[int]] = {}
        self._contracted: list[tuple[int, Update]] = []
        self._lowest_change = 0

    def append(self, update: Update) -> None:
        """Add an update as the last one."""
        serial = len(self.entries)
        self.entries.append(update)
        for tag in update.tags:
            if tag in self._of_tag:
                self._of_tag[tag].append(serial)
            else:
                self._of_tag[tag] = [serial]
        if update.turn in self._of_turn:
            self._of_turn[update.turn].append(serial)
        else:
            self._of_turn[update.turn] = [serial]
        if type(update.formula) is not Atom and is_explicit(update):
            self.explicit += 1

    def contract(self, record: str) -> tuple[Update, ...]:
        """Drop every entry that stands for the record, and return them in order."""
        dropped: list[Update] = []
        for serial in self._of_tag.get(record, ()):
            update = self.entries[serial]
            if update is not None:
                self.entries[serial] = None
                self._contracted.append((serial, update))
                self._lowest_change = min(self._lowest_change, serial)
                self.explicit -= is_explicit(update)
                dropped.append(update)
        return tuple(dropped)

    def updates(self) -> Iterator[Update]:
        """The entries in order, without those contracted."""
        return (update for update in self.entries if update is not None)

    def of_turn(self, turn: int) -> tuple[Update, ...]:
        """The entries of one turn in order, without those contracted."""
        found = (self.entries[serial] for serial in self._of_turn.get(turn, ()))
        return tuple(update for update in found if update is not None)

    def mark(self) -> Mark:
        """This moment."""
        return Mark(len(self.entries), len(self._contracted))

    def rollback(self, mark: Mark) -> None:
        """Take back what was appended and contracted since the mark."""
        while len(self._contracted) > mark.contracted:
            serial, update = self._contracted.pop()
            self.entries[serial] = update
            self._lowest_change = min(self._lowest_change, serial)
            self.explicit += is_explicit(update)
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
            _pop(self._of_tag, tag)
        _pop(self._of_turn, update.turn)
        self.explicit -= is_explicit(update)


def _pop(index: dict[Key, list[int]], key: Key) -> None:
    serials = index[key]
    serials.pop()
    if not serials:
        del index[key]
