"""Where the segments of an archive lie: what the archive needs of a place, and a folder as one.

A place takes whole objects and replaces one small object, the manifest, in one step. Nothing more
is asked of it, so that a store of objects can be one too.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, final

from processor.vault.lasting import sync_folder, write_whole
from replay.errors import StoreError
from replay.one_writer import one_writer

MANIFEST = "manifest.json"


class SegmentPlace(Protocol):
    """Segments by name, such as `log/tenant=acme/day=2026-03-01/000001-000000.parquet`.

    Every method but `location` may raise StoreError.
    """

    def manifest(self) -> bytes | None:
        """The manifest; None if there is none yet."""

    def publish(self, manifest: bytes) -> None:
        """Put another manifest in its place: whoever reads finds the one or the other, whole."""

    def put(self, name: str, file: Path) -> None:
        """Take a finished file; on return it lasts. The file itself may be gone then."""

    def names(self) -> list[str]:
        """The names of all segments that are there, whether or not a manifest knows them."""

    def delete(self, name: str) -> None:
        """Delete a segment; one that is not there is none."""

    def location(self, name: str) -> str:
        """What DuckDB reads the segment by."""


@final
class LocalFolder:
    """A folder of this machine. It has one writer at a time; see `writing`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def manifest(self) -> bytes | None:
        """The manifest; None if there is none yet."""
        path = self.path / MANIFEST
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{path}: cannot read: {error.strerror}") from error

    def publish(self, manifest: bytes) -> None:
        """Write it beside, sync it, and rename it into place."""
        path = self.path / MANIFEST
        try:
            write_whole(path, manifest, path.with_name(f".{path.name}"))
        except OSError as error:
            raise StoreError(f"{path}: cannot write: {error.strerror}") from error

    def put(self, name: str, file: Path) -> None:
        """Sync the file, which lies in what `writing` gave, and rename it into place."""
        path = self.path / name
        try:
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
            path.parent.mkdir(parents=True, exist_ok=True)
            file.rename(path)
            for folder in (path.parent, *path.parent.parents):
                sync_folder(folder)  # each may be new
                if folder == self.path:
                    break
        except OSError as error:
            raise StoreError(f"{path}: cannot write: {error.strerror}") from error

    def names(self) -> list[str]:
        """The names of all segments."""
        found = self.path.glob("*/**/*.parquet")
        relative = (path.relative_to(self.path) for path in found)
        return sorted(str(each) for each in relative if not each.parts[0].startswith("."))

    def delete(self, name: str) -> None:
        """Delete a segment."""
        path = self.path / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{path}: cannot delete: {error.strerror}") from error

    def location(self, name: str) -> str:
        """The path of its file."""
        return str(self.path / name)

    def writing(self) -> AbstractContextManager[Path]:
        """Be the one who writes; gives an empty folder for what is unfinished; see `one_writer`."""
        return one_writer(self.path)
