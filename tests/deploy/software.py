"""Where the tools are that check image, chart and alert rules, or why they are not here."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CHART = ROOT / "helm" / "standfast"
BUILD = Path(os.environ.get("STANDFAST_TEST_TOOLS", ROOT / "build" / "tools"))
FETCHED = BUILD / "fetched"
"""Written last by `make tools`, so that an interrupted fetch starts again."""
NEED_TOOLS = frozenset({"image"})
"""Fixtures that need root or a tool: a test that uses one belongs to the group `deploy`."""
PYTHON_TOOLS = BUILD / "venv"
HELM = BUILD / "helm"
PROMTOOL = BUILD / "promtool"
SECONDS_MAX = 300


@cache
def missing() -> str | None:
    """Why the tools are not here, or None if they are."""
    if not FETCHED.exists():
        return f"the tools are not in {BUILD}; make tools fetches them"
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None:
        return "the layout of the image is tried in a name space of its own, which only root has"
    return None


def ran(*command: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end, with what it says."""
    return subprocess.run(
        [*map(str, command)],
        cwd=ROOT,
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )


def python_tool(name: str) -> Path:
    """A command that one of the packages of `deploy/tools.lock` brings."""
    return PYTHON_TOOLS / "bin" / name
