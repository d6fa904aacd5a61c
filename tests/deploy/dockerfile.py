"""Reads a Dockerfile as far as ours goes: stages, instructions, and what the last one sets."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Instruction(NamedTuple):
    """One instruction: its name, and the rest with continued lines joined."""

    name: str
    rest: str

    def words(self) -> list[str]:
        """The rest as its JSON form says it; a shell form is refused, which would need a shell."""
        words = json.loads(self.rest)
        assert all(isinstance(word, str) for word in words)
        return list(words)


@dataclass
class Stage:
    """From one FROM to the next."""

    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)

    def all(self, name: str) -> list[Instruction]:
        """Every instruction of that name."""
        return [each for each in self.instructions if each.name == name]

    def one(self, name: str) -> Instruction:
        """The only instruction of that name."""
        (found,) = self.all(name)
        return found

    def environment(self) -> dict[str, str]:
        """What ENV sets."""
        pairs = (pair for each in self.all("ENV") for pair in shlex.split(each.rest))
        return dict(pair.split("=", 1) for pair in pairs)


def read_dockerfile(path: Path) -> list[Stage]:
    """The stages of a Dockerfile in their order."""
    lines = (line for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    stages: list[Stage] = []
    for line in filter(str.strip, joined.splitlines()):
        name, rest = line.split(maxsplit=1)
        if name == "FROM":
            base, _, alias = rest.partition(" AS ")
            stages.append(Stage(base, alias))
        else:
            stages[-1].instructions.append(Instruction(name, rest))
    return stages


def health_command(stage: Stage) -> list[str]:
    """What HEALTHCHECK runs."""
    options, _, command = stage.one("HEALTHCHECK").rest.partition("CMD ")
    assert "--timeout=" in options
    return Instruction("CMD", command).words()
