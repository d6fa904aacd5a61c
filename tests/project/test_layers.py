"""Imports go one way, the engine is pure, and the checks for both can fail."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.sources import PACKAGES, ROOT, pyproject, python_files, relative, tree

BIN = Path(sys.executable).parent
CONTRACTS = {
    contract["id"]: contract for contract in pyproject()["tool"]["importlinter"]["contracts"]
}


def _lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "lint-imports", "--no-cache", "--no-logo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the packages and their configuration, to be broken on purpose."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_layers_hold() -> None:
    """No module imports from a layer above its own."""
    checked = _lint_imports(ROOT)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("file", "wrong_import", "contract"),
    [
        ("schemas/wrong.py", "import processor.engine", "layers"),
        ("processor/engine/wrong.py", "import replay", "layers"),
        ("processor/engine/wrong.py", "import duckdb", "engine"),
        ("processor/engine/wrong.py", "from pydantic import BaseModel", "engine"),
    ],
)
def test_a_wrong_import_is_caught(copy: Path, file: str, wrong_import: str, contract: str) -> None:
    """The check fails on an import against the layers, and names the broken rule."""
    (copy / file).write_text(f'"""Wrong."""\n\n{wrong_import}\n')
    checked = _lint_imports(copy)
    assert checked.returncode != 0
    assert f"{CONTRACTS[contract]['name']} BROKEN" in checked.stdout
    assert f"{file.removesuffix('.py').replace('/', '.')} -> " in checked.stdout


def test_every_package_has_its_layer() -> None:
    """A package that no layer names would not be checked, so there is none."""
    named = {
        name.strip("() ")
        for layer in CONTRACTS["layers"]["layers"]
        for name in layer.replace(":", "|").split("|")
    }
    packages = {"schemas", "replay"} | {
        f"processor.{path.parent.name}"
        for path in (ROOT / "processor").glob("*/*.py")
        if path.parent.name != "scenarios"  # data, and one module that reads it
    }
    assert packages <= named


def test_the_engine_may_import_no_dependency_but_one() -> None:
    """The rule for the engine names every runtime dependency except the decision diagrams."""
    declared = {requirement.split(">")[0] for requirement in pyproject()["project"]["dependencies"]}
    modules = {name.removesuffix("-streaming").replace("-", "_") for name in declared}
    assert set(CONTRACTS["engine"]["forbidden_modules"]) == modules - {"dd"}


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("path", python_files("processor/engine"), ids=relative)
def test_the_engine_imports_only_what_is_allowed(path: Path) -> None:
    """An engine module imports the standard library, the contracts, the engine, and dd."""
    allowed = sys.stdlib_module_names | {"schemas", "processor", "dd"}
    assert _imports(path) <= allowed


@pytest.mark.parametrize("path", python_files("processor/engine"), ids=relative)
def test_the_engine_opens_nothing(path: Path) -> None:
    """An engine module calls neither open nor input, which no import would show."""
    called = {
        node.func.id
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"open", "input", "print", "eval", "exec", "__import__"}


@pytest.mark.parametrize(
    "impure",
    [
        "import time",
        "import random",
        "import uuid",
        "import logging",
        "import asyncio",
        "import os.path",
        "from os import environ",
        "import duckdb",
        "import orjson",
        "from pydantic import BaseModel",
        "from datetime import datetime\n\nNOW = datetime.now()",
        "import datetime\n\nNOW = datetime.datetime.now(datetime.UTC)",
    ],
)
def test_the_linter_bans_the_impure(tmp_path: Path, impure: str) -> None:
    """The engine's own linter settings refuse clocks, chance, I/O and other libraries."""
    engine = tmp_path / "processor" / "engine"
    engine.mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copy(ROOT / "processor" / "engine" / "ruff.toml", engine)
    (engine / "wrong.py").write_text(f'"""Wrong."""\n\n{impure}\n')
    checked = subprocess.run(
        [BIN / "ruff", "check", "--no-cache", "--output-format", "concise", engine],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 1
    assert "TID251" in checked.stdout
