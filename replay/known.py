"""Which conversations a store may hold, in memory that does not grow with their number."""

from __future__ import annotations

import hashlib
from typing import final

import duckdb

from schemas.ids import conversation_key

_BITS = 2**25
_ROWS = 10_000


@final
class KnownConversations:
    """A Bloom filter with one hash: what it does not hold is certainly not in the store.

    Of other conversations it takes one in six hundred for known with fifty thousand in it, one in
    thirty with a million; asking the store about those costs a query and nothing else.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._seen = bytearray(_BITS // 8)
        # Two events and what came of them, so that one altered row does not hide a conversation.
        rows = connection.cursor().execute(
            "SELECT tenant_id, conversation_id FROM log WHERE sequence <= 2 UNION "
            "SELECT tenant_id, conversation_id FROM derived WHERE sequence <= 2 AND place = 0 "
            "UNION SELECT tenant_id, conversation_id FROM snapshots"  # what was taken in has these
        )
        while chunk := rows.fetchmany(_ROWS):
            for tenant_id, conversation_id in chunk:
                self.add(conversation_key(tenant_id, conversation_id))

    def add(self, key: str) -> None:
        """From now on the key may be held."""
        place = _place(key)
        self._seen[place >> 3] |= 1 << (place & 7)

    def __contains__(self, key: str) -> bool:
        place = _place(key)
        return bool(self._seen[place >> 3] & 1 << (place & 7))


def _place(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest()) % _BITS
