"""`make browser`: install Debian's Chromium if there is no browser and we may.

On a build server a failure is a failure; elsewhere it is one line, and the tests that need a
browser are left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from tests.browser.software import missing
from tests.kafka.fetch import on_build_server

INSTALL_SECONDS_MAX = 600
_COMMANDS = (
    ["apt-get", "update", "--quiet"],
    ["apt-get", "install", "--quiet", "--yes", "--no-install-recommends", "chromium"],
)


def main() -> int:
    """Install; the status says whether a run of the tests may go on."""
    if missing() is None:
        return 0
    failure = _install()
    missing.cache_clear()
    failure = failure or missing()
    if failure is None:
        return 0
    print(f"Chromium was not installed: {failure}", file=sys.stderr)
    return 1 if on_build_server() else 0


def _install() -> str | None:
    """Install it; or say why not."""
    if shutil.which("apt-get") is None:
        return "there is no apt-get"
    if os.geteuid() != 0:
        return "only root may; apt-get install chromium does it"
    for command in _COMMANDS:
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=INSTALL_SECONDS_MAX,
            )
        except subprocess.TimeoutExpired:
            return f"{command[1]} took longer than {INSTALL_SECONDS_MAX} s"
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or [f"{command[1]} failed"])[-1]
    return None


if __name__ == "__main__":
    sys.exit(main())
