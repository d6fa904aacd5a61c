"""A run says what it leaves out; a build server accepts no missing data, Kafka, browser or tool."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.sources import ROOT

_TESTS = '''
import pytest


def test_plain():
    """It runs always."""


def test_with_data(shared_data):
    """It needs the data, which using the fixture says."""
    assert shared_data.is_dir()


@pytest.mark.data
def test_marked_as_data():
    """It needs the data, which its mark says."""


@pytest.mark.kafka
def test_marked_as_kafka():
    """It needs Apache Kafka, which its mark says."""


def test_with_kafka(start_kafka):
    """It needs Apache Kafka, which using the fixture says."""


@pytest.mark.browser
def test_marked_as_browser():
    """It needs a browser, which its mark says."""


@pytest.mark.deploy
def test_marked_as_deploy():
    """It needs the tools, which its mark says."""


@pytest.mark.hooks
def test_marked_as_hooks():
    """It needs the frameworks of the client's hooks, which its mark says."""


@pytest.mark.openssl
def test_marked_as_openssl():
    """It needs OpenSSL, which its mark says."""


@pytest.mark.bench
def test_measurement():
    """It measures."""


@pytest.mark.thorough
def test_long():
    """It takes long."""
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with our fixtures and configuration, data, and what seems the software."""
    tests = tmp_path / "tests"
    tests.mkdir()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copy(ROOT / "tests" / "conftest.py", tests)
    for software in ("kafka", "browser", "deploy"):
        without = shutil.ignore_patterns("test_*")
        shutil.copytree(ROOT / "tests" / software, tests / software, ignore=without)
    (tests / "test_small.py").write_text(_TESTS)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "set.json").write_text("[]")
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "fetched").touch()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "fetched").touch()
    for file in ("__init__.py", "software.py"):
        (tests / "client").mkdir(exist_ok=True)
        shutil.copy(ROOT / "tests" / "client" / file, tests / "client")
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / ".installed").touch()
    _pretend(tmp_path / "chromium", "exit 1")
    for folder, names in (
        ("few", ("unshare", "setpriv")),
        ("programs", ("unshare", "setpriv", "openssl")),
    ):
        for name in names:
            (tmp_path / folder).mkdir(exist_ok=True)
            _pretend(tmp_path / folder / name, "exit 1")
    for version in ("11", "17"):
        _pretend_java(tmp_path / f"java{version}" / "bin" / "java", version)
    return tmp_path


def _pretend_java(program: Path, version: str) -> None:
    program.parent.mkdir(parents=True)
    _pretend(program, f"echo 'openjdk version \"{version}.0.1\"' >&2")


def _pretend(program: Path, does: str) -> None:
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)


def _run(
    project: Path,
    *options: str,
    data: str = "data",
    kafka: str = "kafka",
    java: str = "java17",
    browser: str = "chromium",
    tools: str = "tools",
    hooks: str = "hooks",
    programs: str = "programs",
    ci: str,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=project,
        env={
            **os.environ,
            "STANDFAST_SHARED_DATA": str(project / data),
            "STANDFAST_TEST_KAFKA": str(project / kafka),
            "JAVA_HOME": str(project / java),
            "STANDFAST_TEST_CHROMIUM": str(project / browser),
            "STANDFAST_TEST_TOOLS": str(project / tools),
            "STANDFAST_TEST_HOOKS": str(project / hooks),
            "PATH": str(project / programs),
            "CI": ci,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_laptop_without_the_data_passes_and_says_so(project: Path) -> None:
    """Without the data its tests are left out by name and reason, and none counts as skipped."""
    run = _run(project, data="missing", ci="")
    assert run.returncode == 0, run.stdout
    assert "7 passed, 4 deselected" in run.stdout
    assert "2 marked 'data': there is no benchmark data at" in run.stdout
    assert "skipped" not in run.stdout


@pytest.mark.parametrize("data", ["missing", "tests/empty"])
def test_a_build_server_without_the_data_fails(project: Path, data: str) -> None:
    """With CI set, a missing or empty folder of data ends the run before any test."""
    (project / "tests" / "empty").mkdir()
    run = _run(project, data=data, ci="true")
    assert run.returncode != 0
    assert "CI is set, but there is no benchmark data" in run.stderr
    assert "passed" not in run.stdout


MISSING = [
    pytest.param({"kafka": "missing"}, "kafka", 2, "make kafka fetches it", id="no Kafka"),
    pytest.param({"java": "java11"}, "kafka", 2, "is not Java 17 or newer", id="old Java"),
    pytest.param({"browser": "missing"}, "browser", 1, "there is no Chromium", id="no browser"),
    pytest.param({"tools": "missing"}, "deploy", 1, "the tools are not in ", id="no tools"),
    pytest.param({"hooks": "missing"}, "hooks", 1, "the frameworks are not here", id="no hooks"),
]
NO_OPENSSL = pytest.param(
    {"programs": "few"}, "openssl", 1, "there is no program of that name", id="no OpenSSL"
)


@pytest.mark.parametrize(("given", "marker", "count", "reason"), [*MISSING, NO_OPENSSL])
def test_a_laptop_without_what_tests_need_passes_and_says_so(
    project: Path, given: dict[str, str], marker: str, count: int, reason: str
) -> None:
    """Its tests are left out by name, with the reason and what to do."""
    run = _run(project, **given, ci="")
    assert run.returncode == 0, run.stdout
    assert f"{9 - count} passed, {2 + count} deselected" in run.stdout
    (line,) = (each for each in run.stdout.splitlines() if f"marked '{marker}': " in each)
    assert line.startswith(f"{count} ")
    assert reason in line


@pytest.mark.parametrize(("given", "marker", "count", "reason"), MISSING)
def test_a_build_server_without_what_tests_need_fails(
    project: Path, given: dict[str, str], marker: str, count: int, reason: str
) -> None:
    """With CI set, what is missing ends the run before any test."""
    del marker, count
    run = _run(project, **given, ci="true")
    assert run.returncode != 0
    assert "CI is set, but " in run.stderr
    assert reason in run.stderr
    assert "passed" not in run.stdout


def test_a_build_server_with_everything_runs_its_tests(project: Path) -> None:
    """With all of it there, only measurements and long tests are left out."""
    run = _run(project, ci="true")
    assert run.returncode == 0, run.stdout
    assert "9 passed, 2 deselected" in run.stdout
    assert "1 marked 'bench'" in run.stdout
    assert "1 marked 'thorough'" in run.stdout


def test_a_run_that_leaves_nothing_out_says_that_too(project: Path) -> None:
    """With both options every test runs."""
    run = _run(project, "--bench", "--thorough", ci="")
    assert "11 passed" in run.stdout
    assert "left out" in run.stdout
    assert "nothing" in run.stdout
