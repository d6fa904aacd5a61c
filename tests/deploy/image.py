"""The image without a container engine: its stages run in a mount name space, at the same paths.

`/opt`, `/var/lib` and `/usr/local` (the Python of the base image) are folders of ours there; the
rest is this machine's, read-only for what is started. Nothing of it is seen outside.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.deploy.dockerfile import Instruction, Stage, health_command
from tests.deploy.software import ROOT

BUILD_SECONDS_MAX = 900
_PLACES = """
set -e
mount --bind "$LAYOUT/opt" /opt
mount --bind "$LAYOUT/lib" /var/lib
mount --bind "$PYTHON" /usr/local
mount -o remount,bind,ro /usr/local
"""
_READ_ONLY = """
mount --bind "$VOLUME" "$VOLUME"
mount -o remount,bind,ro /var/lib
mount -o remount,bind,ro /opt
mount -o remount,bind,ro /
cd "$WORKDIR"
exec setpriv --reuid="$UID_GID" --regid="$UID_GID" --clear-groups --no-new-privs \\
    --bounding-set=-all env -i "$@"
"""


@dataclass(frozen=True)
class Image:
    """A built image: its folders, and the stage that says how it starts."""

    layout: Path
    stage: Stage

    @property
    def volume(self) -> Path:
        """Where the data are, as seen from outside."""
        (volume,) = self.stage.one("VOLUME").words()
        return self.layout / "lib" / Path(volume).relative_to("/var/lib")

    def command(self, *arguments: str, **settings: str) -> tuple[list[str], dict[str, str]]:
        """What an engine would run, and its environment; `settings` are given at the start."""
        words = [*self.stage.one("ENTRYPOINT").words(), *arguments]
        return self._inside(words, settings)

    def health(self, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run the health check, with the settings that the container was started with."""
        command, environment = self._inside(health_command(self.stage), settings)
        return _ran(command, environment, 60)

    def run(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the image to its end."""
        return _ran(*self.command(*arguments, **settings), 300)

    def _inside(
        self, words: list[str], settings: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        user, _, group = self.stage.one("USER").rest.partition(":")
        assert user == group
        libraries = {"LD_LIBRARY_PATH": "/usr/local/lib"}  # which the base image knows by itself
        variables = {**self.stage.environment(), **libraries, **settings}
        told = {
            "UID_GID": user,
            "VOLUME": self.stage.one("VOLUME").words()[0],
            "WORKDIR": self.stage.one("WORKDIR").rest,
        }
        script = ["unshare", "--mount", "sh", "-c", _PLACES + _READ_ONLY, "sh"]
        pairs = [f"{name}={value}" for name, value in variables.items()]
        return [*script, *pairs, *words], _environment(self.layout, told)


def build(stages: list[Stage], folder: Path) -> Image:
    """Run the instructions of all stages; those after the first copy from the one before."""
    before = folder
    for number, stage in enumerate(stages):
        layout = folder / f"stage-{number}"
        for place in ("opt", "lib"):
            (layout / place).mkdir(parents=True)
        workdir = "/"
        for instruction in stage.instructions:
            match instruction.name:
                case "WORKDIR":
                    workdir = instruction.rest
                    _outside(layout, workdir).mkdir(parents=True, exist_ok=True)
                case "COPY":
                    _copy(instruction, before, layout, workdir)
                case "RUN":
                    _run(instruction.rest, layout, workdir, stage.environment())
        before = layout
    return Image(before, stages[-1])


def _outside(layout: Path, inside: str) -> Path:
    """Where a path of the image is for us."""
    path = Path(inside)
    if path.is_relative_to("/opt"):
        return layout / "opt" / path.relative_to("/opt")
    return layout / "lib" / path.relative_to("/var/lib")


def _copy(instruction: Instruction, before: Path, layout: Path, workdir: str) -> None:
    *sources, target = instruction.rest.split()
    into = _outside(layout, str(Path(workdir) / target))
    if sources[0].startswith("--from="):
        shutil.copytree(_outside(before, sources[1]), into, symlinks=True)
        return
    for source in sources:
        path = ROOT / source
        if path.is_dir():
            shutil.copytree(path, into, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        else:
            into.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, into)


def _run(command: str, layout: Path, workdir: str, variables: Mapping[str, str]) -> None:
    script = f'{_PLACES} cd "$WORKDIR"; exec sh -c "$1"'
    told = {name: value for name, value in variables.items() if name != "PIP_NO_CACHE_DIR"}
    environment = _environment(layout, {"WORKDIR": workdir, **told})
    done = _ran(
        ["unshare", "--mount", "sh", "-c", script, "sh", command], environment, BUILD_SECONDS_MAX
    )
    assert done.returncode == 0, done.stderr[-2_000:]


def _environment(layout: Path, told: Mapping[str, str]) -> dict[str, str]:
    """This machine's, so that its package index is found, with what the base image has."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    places = {"LAYOUT": str(layout), "PYTHON": sys.base_prefix}
    return {**ours, "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", **places, **told}


def _ran(
    command: list[str], environment: Mapping[str, str], seconds: int
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
