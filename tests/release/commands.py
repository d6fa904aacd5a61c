"""The programs of deploy/release, run as make runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.project.sources import ROOT

SECONDS_MAX = 300


def release(
    program: str, *arguments: str | Path, root: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run one of them, with our Python."""
    return subprocess.run(
        [sys.executable, str(root / "deploy" / "release" / f"{program}.py"), *map(str, arguments)],
        cwd=root,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
