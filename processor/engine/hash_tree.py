"""A tree of hashes over a list that grows and changes in place.

Sixteen children to a node: changing one leaf of n costs log16(n) hashes, paid when the root is
asked for, so that several changes between two questions share the nodes above them.
"""

from __future__ import annotations

from hashlib import sha256
from typing import final

FANOUT = 16
_SIZE = 32
_NODE_SIZE = FANOUT * _SIZE
EMPTY_LEAF = bytes(_SIZE)


@final
class HashTree:
    """A list of 32-byte leaves under a tree of hashes; trailing empty leaves do not count."""

    def __init__(self) -> None:
        self._levels: list[bytearray] = [bytearray()]
        self._dirty: set[int] = set()
        self._root: bytes | None = None

    def __getitem__(self, index: int) -> bytes:
        return bytes(self._levels[0][index * _SIZE : (index + 1) * _SIZE])

    def set(self, index: int, leaf: bytes) -> None:
        """Put a leaf in its place; places in between are empty until they are set."""
        leaves = self._levels[0]
        start = index * _SIZE
        if start > len(leaves):
            self._dirty.update(range(len(leaves) // _NODE_SIZE, index // FANOUT))
            leaves.extend(bytes(start - len(leaves)))
        leaves[start : start + _SIZE] = leaf
        self._dirty.add(index // FANOUT)
        if leaf == EMPTY_LEAF:
            self._drop_empty_end()

    def root(self) -> bytes:
        """The hash over all leaves and their number."""
        if not self._dirty and self._root is not None:
            return self._root
        levels, dirty = self._levels, self._dirty
        below = levels[0]
        height = 0
        while len(below) > _SIZE:
            height += 1
            if height == len(levels):
                levels.append(bytearray())
            above = levels[height]
            width = -(-len(below) // _NODE_SIZE)
            if width * _SIZE != len(above):
                grown = range(len(above) // _SIZE, width)
                dirty = {*dirty, *grown}
                above[width * _SIZE :] = bytes(len(grown) * _SIZE)
            for node in dirty:
                if node < width:
                    children = below[node * _NODE_SIZE : (node + 1) * _NODE_SIZE]
                    above[node * _SIZE : (node + 1) * _SIZE] = sha256(children).digest()
            dirty = {node // FANOUT for node in dirty}
            below = above
        del levels[height + 1 :]
        self._dirty = set()
        count = len(levels[0]) // _SIZE
        self._root = sha256(count.to_bytes(8, "big") + below).digest()
        return self._root

    def _drop_empty_end(self) -> None:
        leaves = self._levels[0]
        while leaves and leaves[-_SIZE:] == EMPTY_LEAF:
            del leaves[-_SIZE:]
            self._dirty.add(len(leaves) // _NODE_SIZE)


def plain_root(leaves: list[bytes]) -> bytes:
    """The root of a `HashTree` with these leaves, computed from the bottom."""
    count = len(leaves)
    level = leaves
    while len(level) > 1:
        level = [
            sha256(b"".join(level[start : start + FANOUT])).digest()
            for start in range(0, len(level), FANOUT)
        ]
    return sha256(count.to_bytes(8, "big") + b"".join(level)).digest()
