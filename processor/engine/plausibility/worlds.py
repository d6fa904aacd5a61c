"""Sets of possible worlds: the interface, and the explicit implementation.

A world gives every variable a truth value. A space holds the variables in the order they were
added; a set belongs to one space, stays valid while variables are added (it leaves them free), and
is an immutable value. The explicit sets are bit arrays over 2^k worlds: the readable oracle of
the decision diagrams in `diagrams.py`, and fast enough where variables are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, final

EXPLICIT_VARIABLES_MAX = 16
_SPREAD_PAIRS = 8_192


class WorldSet(Protocol):
    """A set of worlds of one space."""

    @property
    def nodes(self) -> int:
        """What the set costs to work with: the nodes of its diagram; 0 if it is explicit."""

    def pairs_with(self, other: Self, /) -> int:
        """What an intersection may cost: how many pairs of nodes it visits at most."""

    def __and__(self, other: Self, /) -> Self:
        """The worlds of both."""

    def __or__(self, other: Self, /) -> Self:
        """The worlds of either."""

    def __invert__(self) -> Self:
        """The other worlds of the space."""

    def is_empty(self) -> bool:
        """Whether there is no world in it."""

    def decides(self, positions: int) -> bool:
        """Whether all its worlds are known to agree on the variables at these positions, as bits.

        False may also mean that nobody looked.
        """

    def spread_pairs(self, visible: tuple[str, ...]) -> int:
        """What `spread` may cost, in pairs of nodes."""

    def spread(self, visible: tuple[str, ...]) -> Self:
        """Every world that agrees with some world of the set on the visible variables.

        These are the cells that the set meets, of an agent who observes those variables.
        """

    def count(self, variables: Sequence[str]) -> int:
        """How many assignments to these variables the worlds of the set make."""

    def assignments(self, variables: Sequence[str]) -> list[frozenset[str]]:
        """These assignments, each as the variables it makes true, in the order of their codes.

        The code of an assignment reads its values as binary digits, the first variable first and
        true before false. The caller has counted them.
        """


class WorldSpace(Protocol):
    """The variables, at most `capacity` of them, and the sets everything else is made of."""

    @property
    def capacity(self) -> int:
        """How many variables there can be."""

    def __len__(self) -> int:
        """How many variables there are."""

    def position(self, variable: str) -> int | None:
        """The place of a variable in the order, from 0; None if it was not added."""

    def add(self, variable: str) -> None:
        """Add a variable as the last one."""

    def everything(self) -> WorldSet:
        """All worlds."""

    def where(self, variable: str) -> WorldSet:
        """The worlds at which the variable is true."""


@final
class ExplicitSpace:
    """At most EXPLICIT_VARIABLES_MAX variables, and the bit patterns of each."""

    capacity = EXPLICIT_VARIABLES_MAX

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}
        self._patterns: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._positions)

    def position(self, variable: str) -> int | None:
        """The place of a variable in the order, from 0; None if it was not added."""
        return self._positions.get(variable)

    def add(self, variable: str) -> None:
        """Add a variable as the last one."""
        assert len(self._positions) < self.capacity, "too many for bit arrays"
        assert variable not in self._positions, variable
        self._positions[variable] = len(self._positions)

    def everything(self) -> ExplicitSet:
        """All worlds."""
        return ExplicitSet(self, 0, 1)

    def where(self, variable: str) -> ExplicitSet:
        """The worlds at which the variable is true."""
        position = self._positions[variable]
        width = position + 1
        return ExplicitSet(self, width, self.pattern(position, width))

    def pattern(self, position: int, width: int) -> int:
        """The bits of those worlds over `width` variables at which this one is true."""
        bits = self._patterns.get((position, width))
        if bits is None:
            block = 1 << position
            bits = ((1 << block) - 1) << block
            for wider in range(position + 1, width):
                bits |= bits << (1 << wider)
            self._patterns[position, width] = bits
        return bits

    def hidden(self, visible: tuple[str, ...], width: int) -> list[int]:
        """The positions below `width` of the variables that are not visible."""
        seen = {self._positions[name] for name in visible if name in self._positions}
        return [position for position in range(width) if position not in seen]

    def width_of(self, variables: Sequence[str]) -> int:
        """How many variables a set must range over to speak of all of these."""
        return 1 + max((self._positions[name] for name in variables), default=-1)


@final
class ExplicitSet:
    """Bit w of `bits` says whether world w is in the set; bit i of w is the value of variable i.

    The set ranges over the first `width` variables and leaves the later ones free.
    """

    __slots__ = ("_bits", "_space", "_width")

    def __init__(self, space: ExplicitSpace, width: int, bits: int) -> None:
        self._space = space
        self._width = width
        self._bits = bits

    @property
    def nodes(self) -> int:
        """Nothing, because the number of worlds is bounded already."""
        return 0

    def pairs_with(self, _: Self, /) -> int:
        """None, because there are no nodes."""
        return 0

    def __and__(self, other: Self, /) -> Self:
        width = max(self._width, other._width)
        return self._like(width, self._over(width) & other._over(width))

    def __or__(self, other: Self, /) -> Self:
        width = max(self._width, other._width)
        return self._like(width, self._over(width) | other._over(width))

    def __invert__(self) -> Self:
        every = (1 << (1 << self._width)) - 1
        return self._like(self._width, self._bits ^ every)

    def is_empty(self) -> bool:
        """Whether there is no world in it."""
        return self._bits == 0

    def decides(self, positions: int) -> bool:
        """Not known: with few variables it is not worth knowing."""
        return False

    def spread_pairs(self, _: tuple[str, ...]) -> int:
        """What `spread` may cost: a constant, because the width is not a function of the set."""
        return _SPREAD_PAIRS

    def spread(self, visible: tuple[str, ...]) -> Self:
        """Every world that agrees with some world of the set on the visible variables."""
        bits = self._bits
        for position in self._space.hidden(visible, self._width):
            true = self._space.pattern(position, self._width)
            shift = 1 << position
            bits |= (bits & true) >> shift | (bits << shift) & true
        return self._like(self._width, bits)

    def count(self, variables: Sequence[str]) -> int:
        """How many assignments to these variables the worlds of the set make."""
        width = max(self._width, self._space.width_of(variables))
        worlds = self.spread(tuple(variables))._over(width).bit_count()
        return worlds >> (width - len(variables))

    def assignments(self, variables: Sequence[str]) -> list[frozenset[str]]:
        """These assignments, each as the variables it makes true, in the order of their codes."""
        bits = self._over(max(self._width, self._space.width_of(variables)))
        positions = [self._space.width_of((name,)) - 1 for name in variables]
        codes = {
            tuple(bool(world >> position & 1) for position in positions)
            for world in range(bits.bit_length())
            if bits >> world & 1
        }
        return [
            frozenset(name for name, value in zip(variables, code, strict=True) if value)
            for code in sorted(codes, reverse=True)
        ]

    def _over(self, width: int) -> int:
        """The bits over at least as many variables; the new ones are free."""
        bits = self._bits
        for position in range(self._width, width):
            bits |= bits << (1 << position)
        return bits

    def _like(self, width: int, bits: int) -> Self:
        return type(self)(self._space, width, bits)
