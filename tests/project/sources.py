"""The project's own files, as the tests of style and layers see them."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schemas", "processor", "replay")

_NOT_OURS = frozenset({".git", "build", "dist", "htmlcov", "standfast-out", "node_modules"})
_CACHES = ("__pycache__", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis")


def python_files(*folders: str) -> list[Path]:
    """The Python files under the given top-level folders, sorted."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def text_files() -> Iterator[tuple[Path, str]]:
    """Every text file that belongs to the project, with its content."""
    for path in sorted(_walk(ROOT)):
        content = path.read_bytes()
        if b"\0" not in content:
            yield path, content.decode("utf-8", errors="replace")


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in _NOT_OURS or path.name.startswith(_CACHES) or path.is_symlink():
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.suffix not in (".pyc", ".duckdb", ".wal") and not path.name.startswith(".cov"):
            yield path


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    return ast.parse(path.read_text(), filename=str(path))


def relative(path: Path) -> str:
    """The path inside the project, as messages give it."""
    return path.relative_to(ROOT).as_posix()


@cache
def pyproject() -> dict[str, Any]:
    """The project's configuration."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())
