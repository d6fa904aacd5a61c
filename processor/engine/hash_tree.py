"""A tree of hashes over a list that grows and changes in place.

Sixteen children to a node: changing one leaf of n costs log16(n) hashes, paid when the root is
asked for, so that several changes between two questions share the nodes above them.
"""

from __future__ import annotations

import hashlib
from typing import final

FANOUT = 16
_SIZE = 32
EMPTY_LEAF = bytes(_SIZE)


@final
class HashTree:
    """A list of 32-byte leaves under a tree of hashes; trailing empty leaves do not count."""

    def __init__(self) -> None:
        self._levels: list[bytearray] = [bytearray()]
        self._dirty: dict[int, None] = {}
        self._root: bytes | None = None

    def __getitem__(self, index: int) -> bytes:
        return bytes(self._levels[0][index * _SIZE : (index + 1) * _SIZE])

    def set(self, index: int, leaf: bytes) -> None:
        """Put a leaf in its place; places in between are empty until they are set."""
        leaves = self._levels[0]
        start = index * _SIZE
        if start > len(leaves):
            grown = range(len(leaves) // _SIZE // FANOUT, index // FANOUT)
            self._dirty.update(dict.fromkeys(grown))
            leaves.extend(bytes(start - len(leaves)))
        leaves[start : start + _SIZE] = leaf
        self._dirty[index // FANOUT] = None
        while leaves and leaves[-_SIZE:] == EMPTY_LEAF:
            del leaves[-_SIZE:]
            self._dirty[len(leaves) // _SIZE // FANOUT] = None

    def root(self) -> bytes:
        """The hash over all leaves and their number."""
        dirty = self._dirty
        if not dirty and self._root is not None:
            return self._root
        level = 0
        while len(self._levels[level]) > _SIZE:
            below = self._levels[level]
            if level + 1 == len(self._levels):
                self._levels.append(bytearray())
            above = self._levels[level + 1]
            width = -(-len(below) // (_SIZE * FANOUT))
            del above[width * _SIZE :]
            if len(above) < width * _SIZE:
                dirty = dict.fromkeys([*dirty, *range(len(above) // _SIZE, width)])
                above.extend(bytes(width * _SIZE - len(above)))
            for node in dirty:
                if node < width:
                    children = below[node * _SIZE * FANOUT : (node + 1) * _SIZE * FANOUT]
                    above[node * _SIZE : (node + 1) * _SIZE] = hashlib.sha256(children).digest()
            dirty = dict.fromkeys([node // FANOUT for node in dirty])
            level += 1
        del self._levels[level + 1 :]
        self._dirty = {}
        count = len(self._levels[0]) // _SIZE
        self._root = hashlib.sha256(count.to_bytes(8, "big") + self._levels[level]).digest()
        return self._root


def plain_root(leaves: list[bytes]) -> bytes:
    """The root of a `HashTree` with these leaves, computed from the bottom."""
    count = len(leaves)
    level = leaves
    while len(level) > 1:
        level = [
            hashlib.sha256(b"".join(level[start : start + FANOUT])).digest()
            for start in range(0, len(level), FANOUT)
        ]
    return hashlib.sha256(count.to_bytes(8, "big") + b"".join(level)).digest()
