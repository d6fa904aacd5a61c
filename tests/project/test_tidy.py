"""Rules of style that no linter has: sizes, docstrings of tests, places, broad excepts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.sources import PACKAGES, python_files, relative, text_files, tree

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60

BROAD_EXCEPTS: dict[str, str] = {}
"""Files that may catch everything, each with its reason; one per process at most."""

MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work|root|home/\w+)/")
REGISTRY_ADDRESS = re.compile(
    r"https?://[^\s\"')>]*(?:/simple\b|/maven2\b|/packages/[0-9a-f]{2}/)"
    r"|pypi\.org|pythonhosted\.org|registry\.npmjs\.org|crates\.io"
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(tree(path)):
        if isinstance(node, Function):
            yield node


def _found(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{relative(path)}:{number}: {line.strip()[:100]}"
        for path, text in text_files()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_files_have_one_subject() -> None:
    """No source file is longer than 400 lines; one that grows past that has two subjects."""
    long = [
        f"{relative(path)} has {lines} lines"
        for path in python_files(*PACKAGES)
        if (lines := len(path.read_text().splitlines())) > FILE_LINES_MAX
    ]
    assert long == []


def test_functions_are_short() -> None:
    """No function in the sources is longer than 60 lines."""
    long = [
        f"{relative(path)}:{function.lineno} {function.name} has {lines} lines"
        for path in python_files(*PACKAGES)
        for function in _functions(path)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert long == []


def _is_one_sentence(docstring: str | None) -> bool:
    if docstring is None:
        return False
    sentence = " ".join(docstring.split())
    starts = sentence[:1].isupper() or not sentence[:1].isalpha()
    return starts and sentence.endswith(".") and not re.search(r"[.!?] [A-Z]", sentence)


def test_every_test_states_its_fact() -> None:
    """Every test has a docstring of one sentence that says what holds."""
    without = [
        f"{relative(path)}:{function.lineno} {function.name}"
        for path in python_files("tests")
        for function in _functions(path)
        if function.name.startswith("test_")
        if not _is_one_sentence(ast.get_docstring(function))
    ]
    assert without == []


@pytest.mark.parametrize(
    ("docstring", "is_one"),
    [
        ("A withdrawn record stays on the map.", True),
        ("A sentence may run\n    over two lines.", True),
        ("It takes 1.5 seconds.", True),
        ("Two sentences. Here they are.", False),
        ("no capital.", False),
        ("No full stop", False),
        ("", False),
        (None, False),
    ],
)
def test_the_rule_for_docstrings_can_fail(docstring: str | None, is_one: bool) -> None:
    """The check tells one sentence from none and from several."""
    assert _is_one_sentence(docstring) is is_one


def test_no_file_names_a_machine() -> None:
    """No path of somebody's machine stands in the repository."""
    assert _found(MACHINE_PATH) == []


def test_no_file_names_a_registry() -> None:
    """No address of a package index stands in the repository: each machine has its own."""
    assert _found(REGISTRY_ADDRESS) == []


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("see /{}/main".format("work"), MACHINE_PATH),
        ("cp /{}/.cache/x".format("root"), MACHINE_PATH),
        ("in '/home/{}/src'".format("ada"), MACHINE_PATH),
        ("--index-url https://mirror.example/{}/".format("simple"), REGISTRY_ADDRESS),
        ("from {}".format("pypi" + ".org"), REGISTRY_ADDRESS),
    ],
)
def test_the_rules_for_places_can_fail(line: str, pattern: re.Pattern[str]) -> None:
    """The patterns find the kinds of places that they forbid."""
    assert pattern.search(line)


def _broad_excepts(module: ast.Module) -> int:
    """How many handlers catch everything, alone or in a tuple."""
    count = 0
    for node in ast.walk(module):
        if isinstance(node, ast.ExceptHandler):
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {kind.id if isinstance(kind, ast.Name) else kind for kind in kinds}
            count += bool(names & {None, "Exception", "BaseException"})
    return count


def test_excepts_are_named() -> None:
    """Only the places with a reason catch everything, and each of them once."""
    counts = {
        relative(path): count
        for path in python_files(*PACKAGES)
        if (count := _broad_excepts(tree(path)))
    }
    assert counts == dict.fromkeys(BROAD_EXCEPTS, 1)


@pytest.mark.parametrize("caught", ["", " Exception", " BaseException", " (KeyError, Exception)"])
def test_the_rule_for_excepts_can_fail(caught: str) -> None:
    """The check sees a bare except, both base classes, and one hidden in a tuple."""
    source = f"try:\n    pass\nexcept{caught}:\n    pass\n"
    assert _broad_excepts(ast.parse(source)) == 1
    assert _broad_excepts(ast.parse(source.replace(f"except{caught}", "except KeyError"))) == 0
