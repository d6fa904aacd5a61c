"""The client as a pipeline has it: its wheel, built here, beside nothing of a worker."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.project.sources import ROOT

CLIENT = ROOT / "processor" / "client"
EXAMPLES = ROOT / "deploy" / "examples"
RUN_SECONDS_MAX = 300


def build_wheel(folder: Path) -> Path:
    """The wheel of the client, built with what is installed here."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=CLIENT,
        check=True,
        capture_output=True,
        timeout=RUN_SECONDS_MAX,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def unpack(wheel: Path, folder: Path) -> Path:
    """A folder for PYTHONPATH in which the wheel lies as an installer would lay it."""
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(folder)
    return folder


def run_example(
    python: Path, folder: Path, program: Path | str, site: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program, or a text of one, in an empty folder with this Python and environment."""
    given = ["-c", program] if isinstance(program, str) else [str(program)]
    home = {} if site is None else {"PYTHONPATH": str(site)}
    return subprocess.run(
        [str(python), *given],
        cwd=folder,
        env={"PATH": os.defpath, "HOME": str(folder), "LANG": "C.UTF-8", **home, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_SECONDS_MAX,
    )
