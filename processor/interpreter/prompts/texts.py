"""The versioned files, and the names that tell one wording from another."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import NamedTuple, final

VERSION = "v1"


class Condition(StrEnum):
    """How much a model is told: the operations' names, their definitions, or also the state."""

    MINIMAL = "minimal"
    DEFINITIONS = "definitions"
    STATE_AUGMENTED = "state_augmented"


@final
class Wording(NamedTuple):
    """A text of fixed wording: the files it was made from give it its id and hash."""

    id: str
    hash: str
    text: str


@cache
def statement_wording(condition: Condition) -> Wording:
    """What a model is told before it is shown a statement."""
    names: tuple[str, ...]
    match condition:
        case Condition.MINIMAL:
            names = ("statement.minimal.md",)
        case Condition.DEFINITIONS:
            names = ("statement.definitions.md",)
        case Condition.STATE_AUGMENTED:
            names = ("statement.definitions.md", "state.md")
    return _wording(f"statement/{condition}", names)


@cache
def candidate_wording() -> Wording:
    """What a model is told before it is shown a draft: the same in every condition."""
    return _wording("candidate", ("candidate.md", "state.md"))


@cache
def refused_text() -> str:
    """What goes before the reasons when a reading was refused."""
    return _text("refused.md")


def _wording(name: str, parts: tuple[str, ...]) -> Wording:
    used = [*parts, "refused.md"]
    hashed = hashlib.sha256()
    for part in used:
        written = _text(part).encode()
        hashed.update(f"{part} {len(written)}\n".encode() + written)
    text = "\n".join(_text(part) for part in parts)
    return Wording(f"{name}/{VERSION}", hashed.hexdigest(), text)


def _text(name: str) -> str:
    return files(__package__).joinpath(VERSION, name).read_text(encoding="utf-8")
