"""`make tools`: fetch what checks the files for production, each tool by its own package client.

Linters and schemas are Python packages, Helm is built by Go, promtool is taken out of Debian's
package `prometheus`, which is not installed, so that no service starts. On a build server a failure
is a failure; elsewhere it is one line, and the tests that need the tools are left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.deploy.software import BUILD, DEPLOY, FETCHED, HELM, PROMTOOL, PYTHON_TOOLS
from tests.kafka.fetch import on_build_server

HELM_PACKAGE = "helm.sh/helm/v3/cmd/helm@v3.22.0"
FETCH_SECONDS_MAX = 1_500


class FetchFailedError(Exception):
    """A tool cannot be had; the message says which, and why."""


def main() -> int:
    """Fetch; the status says whether a run of the tests may go on."""
    FETCHED.unlink(missing_ok=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as threads:  # they wait for different things
        running = [threads.submit(fetch) for fetch in (_helm, _packages, _promtool)]
    failures = [failure for each in running if (failure := each.exception()) is not None]
    for failure in failures:
        if not isinstance(failure, FetchFailedError):
            raise failure
        print(f"a tool was not fetched: {failure}", file=sys.stderr)
    if not failures:
        FETCHED.touch()
        return 0
    return 1 if on_build_server() else 0


def _packages() -> None:
    """The Python packages of `deploy/tools.lock`, whose hashes are checked."""
    venv.create(PYTHON_TOOLS, clear=True, with_pip=True)
    install = [PYTHON_TOOLS / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    lock = ["--quiet", "--require-hashes", "--no-deps", "-r", DEPLOY / "tools.lock"]
    _run("the Python packages", [*install, "install", *lock])


def _helm() -> None:
    """Helm, without what a debugger would need."""
    if shutil.which("go") is None:
        raise FetchFailedError("Helm: there is no Go (go) to build it with")
    _run(
        "Helm",
        ["go", "install", "-trimpath", "-ldflags=-s -w", HELM_PACKAGE],
        {"GOBIN": str(HELM.parent), "CGO_ENABLED": "0"},
    )


def _promtool() -> None:
    """The one program out of Debian's package."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise FetchFailedError("promtool: there is no apt-get, or no dpkg-deb")
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        if os.geteuid() == 0:
            _run("promtool", ["apt-get", "update", "--quiet"])
        _run("promtool", ["apt-get", "download", "--quiet", "prometheus"], within=folder)
        for package in Path(folder).glob("*.deb"):
            _run("promtool", ["dpkg-deb", "--extract", package, folder])
        shutil.copy(Path(folder) / "usr" / "bin" / "promtool", PROMTOOL)


def _run(
    what: str,
    command: list[str | Path],
    more: Mapping[str, str] | None = None,
    within: str | None = None,
) -> None:
    """Run it to its end. Raises FetchFailedError, with the last line that it said."""
    try:
        done = subprocess.run(
            command,
            cwd=within,
            env={**os.environ, **(more or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=FETCH_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as late:
        raise FetchFailedError(f"{what}: it took longer than {FETCH_SECONDS_MAX} s") from late
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no reason was given"]
        raise FetchFailedError(f"{what}: {said[-1]}")


if __name__ == "__main__":
    sys.exit(main())
