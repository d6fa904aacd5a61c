"""The README's example with a model runs as it stands there."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interpreter.scripted_endpoint import Json, ScriptedEndpoint, Step, claims, operations
from tests.interpreter.test_run_with_model import COMMAND, MODEL, environment
from tests.kafka.software import ROOT

(EXAMPLE,) = re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
COMMANDS = [line for line in EXAMPLE.splitlines() if line.startswith("standfast ")]


def model(body: Json) -> Step:
    """What somebody might read out of the four lines."""
    asked = body["messages"][-1]["content"]
    if "half empty" in asked:
        by = {"record": "e1", "claim": "The line is from the test cluster.", "premises": []}
        return operations({"op": "revise", "target": "o1", "by": by})
    if "backup volume is full" in asked and "delete the oldest snapshots, because" in asked:
        return claims({"text": "the backup volume is full", "records": ["h1"]})
    if "Then the backup volume" in asked:
        full = {"op": "hypothesize", "record": "h1", "claim": "The volume is full."}
        return operations({**full, "premises": ["o1"], "explains": []})
    return operations({"op": "observe", "record": "o1", "claim": "The log says: no space left."})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a newcomer stands: the scenarios are where the README has them, and build is made."""
    (tmp_path / "build").mkdir()
    shutil.copytree(ROOT / "processor" / "scenarios", tmp_path / "processor" / "scenarios")
    return tmp_path


def run(command: str, folder: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """A command of the README; only the name of the program is another."""
    return subprocess.run(
        [*COMMAND, *shlex.split(command)[1:]],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), **given},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_with_an_endpoint_every_command_works(folder: Path) -> None:
    """The draft is found to rest on what was taken back, and the calls are counted."""
    assert len(COMMANDS) == 2
    with ScriptedEndpoint(always=model) as endpoint:
        told, usage = (run(command, folder, **environment(endpoint)) for command in COMMANDS)
    assert (told.returncode, usage.returncode) == (0, 0), (told.stderr, usage.stderr)
    assert "ungrounded: the backup volume is full" in told.stdout
    assert MODEL in usage.stdout


def test_without_one_it_says_what_to_do(folder: Path) -> None:
    """One line names the settings, and nothing is written."""
    told = run(COMMANDS[0], folder)
    assert (told.returncode, told.stdout, told.stderr.count("\n")) == (2, "", 1)
    assert "set OPENAI_API_KEY, or OPENAI_BASE_URL" in told.stderr
    told = run(COMMANDS[0], folder, OPENAI_API_KEY="k")
    assert (told.returncode, told.stdout, told.stderr.count("\n")) == (2, "", 1)
    assert "set STANDFAST_INTERPRETER_MODEL" in told.stderr
    assert list((folder / "build").iterdir()) == []
