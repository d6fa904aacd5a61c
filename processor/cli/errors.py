"""Failures that a user of the command line can cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class BadInputError(Exception):
    """Input or arguments that cannot be used; `str(error)` is one line that says where and why."""


@contextmanager
def writing_to(place: Path | None) -> Iterator[None]:
    """Name the place where a file cannot be written, if the system does not name the file."""
    try:
        yield
    except OSError as error:
        if place is None or error.filename is not None:
            raise
        raise BadInputError(f"{place}: cannot write: {error.strerror}") from error
