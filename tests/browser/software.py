"""Where a browser is on this machine, or why the tests cannot have one."""

from __future__ import annotations

import os
import shutil
from functools import cache

NAMES = ("chromium", "chromium-browser", "google-chrome")
NEED_BROWSER = frozenset({"browser", "open_page"})
"""Fixtures that give a browser: a test that uses one belongs to the group `browser`."""
OPTIONS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",  # which root has not
)


@cache
def missing() -> str | None:
    """Why there is no browser here, or None if there is one."""
    if program() is None:
        return "there is no Chromium; make browser installs it where it may"
    return None


def program() -> str | None:
    """The path of the browser: the one of STANDFAST_TEST_CHROMIUM, or on the PATH."""
    named = os.environ.get("STANDFAST_TEST_CHROMIUM")
    if named is not None:
        return shutil.which(named)
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)
