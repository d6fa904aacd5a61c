"""Compares snapshots with the conversation that folding gives again."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from typing import NamedTuple, final

import orjson

from processor.engine.snapshot import SNAPSHOT_FORMAT
from processor.engine.snapshot_delta import DELTA_FORMAT
from replay.audit.rows import SnapshotRow
from replay.divergence import Divergence, Where, changed, changed_json


@final
class _Head(NamedTuple):
    """Where a snapshot was taken, as its own bytes say."""

    place: tuple[str, str, int]
    turn: int
    format: int


def compare_snapshot(
    row: SnapshotRow, expected: bytes | None, state_digest: str | None
) -> Iterator[Divergence]:
    """A snapshot with itself, and with the conversation dumped at its event where that is known."""
    where = Where("snapshots", *row[:4])
    stored = decompressed(row)
    hashed = hashlib.sha256(row.conversation).hexdigest()
    head = None if stored is None else _head(stored)
    if stored is None or head is None:
        yield Divergence(where, "conversation", "was changed: it cannot be read")
        return
    is_elsewhere = hashed == row.bytes_hash and head.place != row[:3]
    if stored != expected and not is_elsewhere:
        if expected is not None:
            yield changed_json(where, "conversation", expected, stored.decode(errors="replace"))
            return
        if hashed != row.bytes_hash:
            yield changed(where, "conversation", row.bytes_hash, hashed)
            return
    if stored != expected or state_digest is None:
        state_digest = row.state_digest
    size = len(row.conversation)
    told = (*head.place, head.turn, head.format, state_digest, size, hashed)
    where = Where("snapshots", *head.place, turn=head.turn)
    for name, value, found in zip(SnapshotRow._fields, told, row, strict=False):
        if value != found:
            yield changed(where, name, value, found)


def base_of(row: SnapshotRow) -> int | None:
    """The event that a delta rests on; None for a snapshot, or if it is damaged."""
    stored = decompressed(row)
    head = None if stored is None else _head(stored)
    if stored is None or head is None or head.format != DELTA_FORMAT:
        return None
    base = orjson.loads(stored).get("base")
    return base if isinstance(base, int) else None


def decompressed(row: SnapshotRow) -> bytes | None:
    """The conversation as bytes, or None if they are damaged."""
    try:
        return zlib.decompress(row.conversation)
    except zlib.error:
        return None


def _head(stored: bytes) -> _Head | None:
    try:
        fields = orjson.loads(stored)
        place = (fields["tenant_id"], fields["conversation_id"], fields["sequence"])
        kind = DELTA_FORMAT if fields["format"] == DELTA_FORMAT else SNAPSHOT_FORMAT
        return _Head(place, fields["turn"], kind)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
