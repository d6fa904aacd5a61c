"""Whose failure it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def blaming(name: str) -> Iterator[None]:
    """Give a failure of the operating system the name of the file that it is about."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error
