"""The licence report agrees with the table of dependencies, and refuses what is not allowed."""

from __future__ import annotations

import re
import sysconfig
from email.message import Message
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from deploy.release.licences import is_allowed, licence_of, licences
from tests.project.sources import ROOT
from tests.project.test_dependencies import ROW
from tests.release.commands import release

HERE = Path(sysconfig.get_path("purelib"))


def _names(expression: str) -> set[str]:
    return set(re.findall(r"[\w.-]+", expression)) - {"AND", "OR"}


def test_what_is_installed_says_what_the_table_says() -> None:
    """For each package of the table that is here, in one of the names at least."""
    table = {
        name: licence
        for name, licence, *_ in ROW.findall((ROOT / "deploy" / "DEPENDENCIES.md").read_text())
    }
    compared = 0
    for each in licences(HERE):
        if (told := table.get(canonicalize_name(each.name))) is not None:
            assert each.licence is not None, each.name
            assert _names(each.licence) & _names(told), each
            compared += 1
    assert compared > 80


def test_the_report_has_a_line_for_each_package() -> None:
    """Name, version, licence and the field that says it; everything here is allowed."""
    done = release("licences", HERE)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^duckdb\t\S+\tMIT\tClassifier$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0-or-later", False),
        ("Proprietary", False),
        ("", False),
    ],
)
def test_what_is_allowed_is_on_the_list(expression: str, allowed: bool) -> None:
    """Of alternatives one is enough, of several that hold together each must be."""
    assert is_allowed(expression) is allowed


def _installed(folder: Path, name: str, *fields: tuple[str, str]) -> None:
    told = Message()
    for field, value in (("Metadata-Version", "2.4"), ("Name", name), ("Version", "1"), *fields):
        told[field] = value
    place = folder / f"{name}-1.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(told.as_string())


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ([("License-Expression", "MIT"), ("License", "Proprietary")], "MIT"),
        ([("License", "Apache License 2.0")], "Apache-2.0"),
        ([("License", "A long text of its own")], None),
        ([("Classifier", "License :: OSI Approved :: MIT License")], "MIT"),
        (
            [("Classifier", "License :: OSI Approved"), ("License", "BSD")],
            "BSD-2-Clause OR BSD-3-Clause",
        ),
        ([], None),
    ],
)
def test_where_a_licence_is_looked_for(
    tmp_path: Path, fields: list[tuple[str, str]], licence: str | None
) -> None:
    """The expression, then the short text, then the classifiers; nothing is guessed."""
    _installed(tmp_path, "made-up", *fields)
    (found,) = Distribution.discover(path=[str(tmp_path)])
    assert licence_of(found).licence == licence


def test_a_licence_that_is_not_allowed_fails_the_report(tmp_path: Path) -> None:
    """It is named, after the whole report."""
    _installed(tmp_path, "fine", ("License-Expression", "MIT"))
    _installed(tmp_path, "made-up", ("License-Expression", "AGPL-3.0-only"))
    done = release("licences", tmp_path)
    assert (done.returncode, done.stderr) == (1, "made-up: AGPL-3.0-only: not allowed\n")
    assert done.stdout.count("\n") == 2
    (tmp_path / "none").mkdir()
    assert release("licences", tmp_path / "none").returncode == 2
