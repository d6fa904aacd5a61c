"""The frameworks that the hooks hang on to: where they are on this machine, or that they are not.

They have a lock and an environment of their own (`make hooks`), since they bring some seventy
packages that nothing else of this project needs.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = Path(os.environ.get("STANDFAST_TEST_HOOKS", ROOT / "build" / "hooks" / "venv"))
INSTALLED = VENV / ".installed"
"""Written last by `make hooks`."""
NEED_HOOKS = frozenset({"hooks"})
"""The fixture that gives the frameworks: a test that uses it belongs to the group `hooks`."""


@cache
def missing() -> str | None:
    """Why the frameworks are not here, or None if they are."""
    return None if INSTALLED.exists() else "the frameworks are not here; make hooks installs them"
