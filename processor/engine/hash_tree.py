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
        self._leaves = bytearray()
        self._above: list[bytearray] = []
        self._dirty: set[int] = set()
        self._root: bytes | None = None

    def __getitem__(self, index: int) -> bytes:
        return bytes(self._leaves[index * _SIZE : (index + 1) * _SIZE])

    def set(self, index: int, leaf: bytes) -> None:
        """Put a leaf in its place; places in between are empty until they are set."""
        leaves = self._leaves
        start = index * _SIZE
        missing = start - len(leaves)
        if missing > 0:
            self._dirty.update(range(len(leaves) // _NODE_SIZE, index // FANOUT))
            leaves += bytes(missing)
        leaves[start : start + _SIZE] = leaf
        self._dirty.add(index // FANOUT)
        if leaf == EMPTY_LEAF:
            self._drop_empty_end()

    def root(self) -> bytes:
        """The hash over all leaves and their number."""
        if self._root is not None and not self._dirty:
            return self._root
        below, dirty, height = self._leaves, self._dirty, 0
        while len(below) > _SIZE:
            if height == len(self._above):
                self._above.append(bytearray())
            above = self._above[height]
            width, before = -(-len(below) // _NODE_SIZE), len(above) // _SIZE
            if width > before:
                dirty = dirty.union(range(before, width))
                above += bytes((width - before) * _SIZE)
            elif width < before:
                dirty = {node for node in dirty if node < width}
                del above[width * _SIZE :]
            for node in dirty:
                first = node * _NODE_SIZE
                hashed = sha256(below[first : first + _NODE_SIZE]).digest()
                above[node * _SIZE : (node + 1) * _SIZE] = hashed
            dirty = {node // FANOUT for node in dirty}
            below = above
            height += 1
        del self._above[height:]
        self._dirty = set()
        count = len(self._leaves) // _SIZE
        self._root = sha256(count.to_bytes(8, "big") + below).digest()
        return self._root

    def _drop_empty_end(self) -> None:
        leaves = self._leaves
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
