"""Where a command reads its lines from."""

from __future__ import annotations

import io
import os
import sys

from processor.cli.errors import BadInputError


def open_input(input_path: str) -> io.FileIO:
    """The file, or standard input for `-`, unbuffered. Raises OSError or BadInputError."""
    if input_path != "-":
        return io.FileIO(input_path, opener=_open_at_once)
    if sys.stdin is None:
        raise BadInputError("standard input is closed")
    return io.FileIO(sys.stdin.fileno(), closefd=False)


def _open_at_once(path: str, flags: int) -> int:
    """Open a named pipe too without waiting for a writer: the wait comes with the first read."""
    return os.open(path, flags | os.O_NONBLOCK)
