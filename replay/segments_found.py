"""Where the archive that a path names lies, and its segments in a folder of this machine.

Of an archive in a bucket, what its manifest names is fetched unless the copy has it.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from replay.bucket import UNFINISHED, Bucket
from replay.bucket_path import BucketPath
from replay.errors import StoreError
from replay.segment_place import MANIFEST, LocalFolder, SegmentPlace
from replay.segments import Manifest, Segment, manifest_at
from schemas.wire import canonical_bytes

_LOCK = ".fetch.lock"
_AT_ONCE = 8


def place_of(path: Path) -> LocalFolder | Bucket:
    """Where an archive lies that is written as segments. Raises StoreError."""
    return Bucket(path) if isinstance(path, BucketPath) else LocalFolder(path)


def segment_folder(path: Path) -> Path:
    """The folder in which the segments of a manifest are that was read."""
    return path.copy if isinstance(path, BucketPath) else path


def read_manifest(path: Path, *, anew: bool = False) -> Manifest:
    """The manifest of an archive, whose segments are then in `segment_folder`.

    `anew` fetches what the copy has already too, and takes it as it comes; otherwise what is not
    what was written is refused. Raises StoreError, also if this is no archive.
    """
    place = place_of(path)
    if isinstance(place, LocalFolder):
        return _there(place, path)
    with _one_fetcher(place.path):
        noted = _noted(place.path)  # first: a writer may publish, and note, what is not read here
        manifest = _there(place, path)
        _fetch(place, noted, manifest, anew=anew)
    return manifest


def begun(place: SegmentPlace, path: Path, first: Manifest) -> Manifest:
    """What one goes on from as the writer of an archive; `first` if there is nothing yet.

    A folder has a lock. In a bucket another manifest is published at once: whoever wrote before has
    not seen it and can publish nothing any more, and the names of what it put are not used again.
    Raises StoreError.
    """
    if not isinstance(path, BucketPath):
        return manifest_at(place, path) or first
    with _one_fetcher(path.copy):
        noted = _noted(path.copy)
        manifest = manifest_at(place, path) or first
        manifest = manifest.model_copy(update={"exports": manifest.exports + 1})
        _fetch(Bucket(path), noted, manifest, anew=False)
        place.publish(canonical_bytes(manifest))
    return manifest


def _there(place: SegmentPlace, path: Path) -> Manifest:
    manifest = manifest_at(place, path)
    if manifest is None:
        raise StoreError(f"{path}: not an archive: it has no {MANIFEST}")
    return manifest


def _fetch(bucket: Bucket, before: Manifest | None, manifest: Manifest, *, anew: bool) -> None:
    """Let the copy, as it was noted before, have every segment and nothing that is forgotten."""
    had = {} if before is None else {each.path: each for each in before.segments}
    wanted = [
        each
        for each in manifest.segments
        if anew or had.get(each.path) != each or not _has(bucket, each)
    ]

    def fetch(segment: Segment) -> str | None:
        is_sound = bucket.fetch(segment.path, segment.bytes) == segment.sha256
        return None if is_sound else segment.path

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        damaged = {path for path in pool.map(fetch, wanted) if path is not None}
    kept = [each for each in manifest.segments if each.path not in damaged]
    bucket.remember(canonical_bytes(manifest.model_copy(update={"segments": tuple(kept)})))
    forgotten = set() if before is None else _paths(before) - _paths(manifest)
    for path in sorted(forgotten):
        LocalFolder(bucket.path).delete(path)
    if damaged and not anew:
        raise StoreError(f"{bucket.url}/{min(damaged)}: is not what was written")


def _noted(copy: Path) -> Manifest | None:
    """What the copy was when it was last brought up, if that can be told."""
    try:
        return manifest_at(LocalFolder(copy), copy)
    except StoreError:
        return None


def _paths(manifest: Manifest) -> set[str]:
    retired = (each.path for each in manifest.retired)
    return {each.path for each in manifest.segments}.union(retired)


def _has(bucket: Bucket, segment: Segment) -> bool:
    try:
        return (bucket.path / segment.path).stat().st_size == segment.bytes
    except OSError:
        return False


@contextmanager
def _one_fetcher(folder: Path) -> Iterator[None]:
    """Be the one who changes a copy; waits for who does."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (folder / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in folder.glob(f"{UNFINISHED}*"):
                left.unlink(missing_ok=True)
            yield
    except OSError as error:
        raise StoreError(f"{folder}: cannot keep a copy there: {error.strerror}") from error
