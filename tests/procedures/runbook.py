"""The commands of a section of deploy/README.md, and a shell that runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.kafka.software import ROOT

RUNBOOK = ROOT / "deploy" / "README.md"
PROGRAMS = {"standfast": "processor.cli", "kafka-topics.sh": "tests.procedures.kafka_topics"}
"""What the commands name, and the modules that are it here."""


def commands(heading: str) -> list[str]:
    """The lines of the blocks of commands below a heading, in order."""
    _, found, rest = RUNBOOK.read_text().partition(f"# {heading}\n")
    assert found, f"deploy/README.md has no section {heading!r}"
    section = re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    blocks = re.findall(r"```bash\n(.*?)```", section, flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def carry_out(command: str, folder: Path, **words: object) -> subprocess.CompletedProcess[str]:
    """Run a line in a folder with its words in capitals filled in; it must end with 0."""
    for word, value in {"HOST:PORT": words.pop("bootstrap", ""), **words}.items():
        command = re.sub(rf"(?<![\w-]){word}\b", str(value), command)
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, module in PROGRAMS.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        program.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": f"{programs}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done
