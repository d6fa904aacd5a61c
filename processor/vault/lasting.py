"""Files that are there whole or not at all, and that last once they are there."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes, fresh: Path, mode: int = 0o666) -> None:
    """Write beside, under the name `fresh`, and rename into place. Raises OSError.

    `mode` is what a new file allows, as far as the process does.
    """
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder last. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
