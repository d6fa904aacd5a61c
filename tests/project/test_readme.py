"""Every command in the README works, and prints what the README says it prints."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from schemas.wire import decode_utterance
from tests.project.sources import ROOT

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```(?:\n```text\n(.*?)```)?", README, flags=re.DOTALL)
COMMANDS = [
    (line, printed)
    for language, body, printed in BLOCKS
    if language == "sh"
    for line in body.splitlines()
    if line.startswith("standfast ")
]
SHOWN = re.findall(r"<!-- shown by: (.*?) -->\n```text\n(.*?)```", README, flags=re.DOTALL)
STATUS = {"--fail-ungrounded": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the scenarios where the README has them, in which a newcomer stands."""
    here = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "processor" / "scenarios", here / "processor" / "scenarios")
    return here


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the README; only the name of the program is another."""
    arguments = shlex.split(command)[1:]
    program = [sys.executable, "-m", "processor.cli.main"]
    return subprocess.run(
        [*program, *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_every_standfast_command_works_and_prints_what_the_readme_shows(folder: Path) -> None:
    """In the order in which they stand, with the status that the text says."""
    assert len(COMMANDS) >= 8
    for command, printed in COMMANDS:
        ran = run(command, folder)
        expected = next((status for word, status in STATUS.items() if word in command), 0)
        assert ran.returncode == expected, (command, ran.stderr)
        if printed:
            assert ran.stdout == printed, command


def test_longer_output_contains_what_the_readme_shows(folder: Path) -> None:
    """A part of an output that the README quotes stands in it, line for line."""
    assert SHOWN
    for command, printed in SHOWN:
        assert printed in run(command, folder).stdout


def test_every_make_target_exists() -> None:
    """The make commands of the README are targets that make knows."""
    targets = set(re.findall(r"make ([a-z-]+)", README))
    assert {"demo", "test"} <= targets
    for target in targets:
        known = subprocess.run(
            ["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=False
        )
        assert known.returncode == 0, target


def test_the_example_utterances_are_valid() -> None:
    """Each line of the JSON example is an utterance."""
    (example,) = (body for language, body, _ in BLOCKS if language == "json")
    for line in example.splitlines():
        assert orjson.loads(line)
        decode_utterance(line.encode())


def test_the_two_commands_stand_first() -> None:
    """A newcomer sees make demo and make test before anything else."""
    first = README.split("##")[0]
    assert "make demo" in first
    assert "make test" in first
