"""Failures are told with the place where they happened."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from processor.cli.errors import BadInputError, writing_to


def test_a_full_disk_is_told_with_the_folder() -> None:
    """The system names no file when a write fails, so the folder that was asked for is named."""
    said = r"^out: cannot write: No space left on device$"
    with pytest.raises(BadInputError, match=said), writing_to(Path("out")):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
