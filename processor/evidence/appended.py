"""A sequence that only ever grows, as a value: every version of it stays what it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar, final

Item = TypeVar("Item")


@final
class Appended(Generic[Item]):
    """The first items of a list that later versions share and go on with.

    The newest version goes on at the cost of what is appended; an older one, as after a branch
    that was thrown away, takes a copy first.
    """

    __slots__ = ("_length", "_shared")

    def __init__(self, items: Sequence[Item] = ()) -> None:
        self._shared = list(items)
        self._length = len(self._shared)

    def plus(self, items: Sequence[Item]) -> Appended[Item]:
        """This sequence with some more items at its end."""
        if not items:
            return self
        longer: Appended[Item] = Appended()
        is_newest = len(self._shared) == self._length
        longer._shared = self._shared if is_newest else self._shared[: self._length]
        longer._shared.extend(items)
        longer._length = len(longer._shared)
        return longer

    def __iter__(self) -> Iterator[Item]:
        return islice(self._shared, self._length)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: int) -> Item:
        return self._shared[range(self._length)[place]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Appended) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(self._length)

    def __repr__(self) -> str:
        return f"Appended({list(self)!r})"
