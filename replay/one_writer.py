"""A folder that one process writes at a time, with room for what is not finished yet."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from replay.errors import StoreBusyError, StoreError

_LOCK = ".lock"
_UNFINISHED = ".writing"


@contextmanager
def one_writer(folder: Path) -> Iterator[Path]:
    """Be the one who writes; gives an empty folder inside for what is unfinished, gone afterwards.

    What a killed process left there is gone too. Raises StoreBusyError if another process writes,
    and StoreError.
    """
    unfinished = folder / _UNFINISHED
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise StoreError(f"{folder}: cannot write: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as held:
            raise StoreBusyError(f"{folder}: another process writes it") from held
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            unfinished.mkdir()
        except OSError as error:
            raise StoreError(f"{unfinished}: cannot write: {error.strerror}") from error
        try:
            yield unfinished
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    finally:
        os.close(lock)
