"""Builds both distributions, wheel and source, so that the same commit gives the same bytes.

`python deploy/release/build.py FOLDER` writes them; every time in them is that of the last commit,
or SOURCE_DATE_EPOCH where that is set.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = (ROOT, ROOT / "processor" / "client")
FOLDER_MODE, FILE_MODE = 0o755, 0o644


def main(arguments: list[str]) -> int:
    """Build into the folder, which must be new or empty."""
    if len(arguments) != 1:
        print("usage: build.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0]).resolve()
    if folder.exists() and any(folder.iterdir()):
        print(f"{folder}: not empty", file=sys.stderr)
        return 2
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or last_commit()
    if epoch is None:
        print("no commit here: set SOURCE_DATE_EPOCH to a time in seconds", file=sys.stderr)
        return 2
    os.umask(0o022)  # the modes of files are part of an archive
    for project in PROJECTS:
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
            cwd=project,
            env={**os.environ, "SOURCE_DATE_EPOCH": epoch},
            check=True,
        )
    return 0


def last_commit() -> str | None:
    """When the last commit was made, in seconds; None outside a repository."""
    asked = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return said.stdout.strip() or None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
