"""Which segments an archive keeps: which are merged, which take the place of others, which may go.

A topic in which little is said would make a tiny segment each time something is published. So as
soon as a folder has `MERGED_AT_ONCE` segments of about one size they become one: a folder never has
more than a few of each size, and a row is written again only a few times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from replay.errors import StoreError
from replay.segment_place import SegmentPlace
from replay.segments import (
    GROWING,
    RETIRED_SECONDS,
    WHOLE,
    Exported,
    Manifest,
    Retired,
    Segment,
    put_all,
)
from schemas.wire import canonical_bytes

MERGED_AT_ONCE = 8
_OURS = re.compile(rf"({'|'.join((*GROWING, *WHOLE))})/(.*/)?\d{{6,}}-\d{{6,}}\.parquet")
SIZES = (64 * 1024, 512 * 1024, 4 * 1024 * 1024)
"""Bytes below which a segment is of the first, the second or the third size; larger ones stay."""


def crowded(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Segments to be merged, each list into one, in the order in which they were written."""
    alike: dict[tuple[str, int], list[Segment]] = {}
    for segment in segments:
        size = next((size for size in SIZES if segment.bytes < size), None)
        if size is not None and segment.table in GROWING:
            folder = str(PurePosixPath(segment.path).parent)
            alike.setdefault((folder, size), []).append(segment)
    return [each for each in alike.values() if len(each) >= MERGED_AT_ONCE]


def replaced(
    before: Manifest, old: Sequence[Segment], added: Sequence[Segment], now: int
) -> tuple[Manifest, list[str]]:
    """The manifest with segments in the place of others, and names that may be deleted after it.

    `now` is in seconds since 1970.
    """
    gone = {segment.path for segment in old}
    retired = [*before.retired, *(Retired(path=path, at=now) for path in sorted(gone))]
    manifest = before.model_copy(
        update={
            "exports": before.exports + 1,
            "segments": (*(each for each in before.segments if each.path not in gone), *added),
            "retired": tuple(each for each in retired if not _is_expired(each, now)),
        }
    )
    return manifest, [each.path for each in retired if _is_expired(each, now)]


def publish(
    place: SegmentPlace,
    before: Manifest,
    old: Sequence[Segment],
    writing: Path,
    exported: Mapping[str, Exported],
    now: int,
) -> Manifest:
    """Put what lies unfinished in the place of `old` segments; the manifest that says so.

    Raises StoreError and OSError.
    """
    added = list(put_all(place, writing, before.exports + 1))
    manifest, expired = replaced(before, old, added, now)
    manifest = manifest.model_copy(update={"exported": dict(exported)})
    place.publish(canonical_bytes(manifest))
    for name in expired:
        with suppress(StoreError):  # it is published; the next writer deletes what is not known
            place.delete(name)
    return manifest


def unknown(manifest: Manifest, names: Iterable[str]) -> Iterator[str]:
    """Names that no manifest knows: what a writer that was killed put and did not publish.

    What has another name than a segment has is somebody else's.
    """
    known = {each.path for each in manifest.segments} | {each.path for each in manifest.retired}
    return (name for name in names if name not in known and _OURS.fullmatch(name))


def _is_expired(retired: Retired, now: int) -> bool:
    return now - retired.at >= RETIRED_SECONDS
