"""The same sources give the same bytes, wherever and whenever they are built."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.project.sources import ROOT
from tests.release.commands import release

pytestmark = pytest.mark.xdist_group("release_build")

EPOCH = "1700000000"
OURS = ("schemas", "processor", "replay", "deploy", "helm", "tests", ".ci")
FILES = ("pyproject.toml", "README.md", "LICENSE", "Makefile", "CHANGELOG.md", ".gitignore")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is built here."""
    folder = tmp_path_factory.mktemp("built") / "dist"
    done = release("build", folder, SOURCE_DATE_EPOCH=EPOCH)
    assert done.returncode == 0, done.stderr
    return folder


def copied(folder: Path) -> Path:
    """The sources at another place, with other times and modes, as another clone has them."""
    for name in OURS:
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
    for name in FILES:
        shutil.copy(ROOT / name, folder)
    for path in folder.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        if path.is_file():
            path.chmod(0o664 | (path.stat().st_mode & 0o100))
    return folder


def test_two_builds_are_equal_byte_for_byte(built: Path, tmp_path: Path) -> None:
    """Another folder, other times of the files and another umask change nothing."""
    elsewhere = copied(tmp_path / "elsewhere")
    before = os.umask(0o002)
    try:
        again = release("build", tmp_path / "dist", root=elsewhere, SOURCE_DATE_EPOCH=EPOCH)
    finally:
        os.umask(before)
    assert again.returncode == 0, again.stderr
    files = sorted(path.name for path in built.iterdir())
    assert files == [
        "standfast-0.1.0-py3-none-any.whl",
        "standfast-0.1.0.tar.gz",
        "standfast_client-0.1.0-py3-none-any.whl",
        "standfast_client-0.1.0.tar.gz",
    ]
    for name in files:
        assert _digest(built / name) == _digest(tmp_path / "dist" / name), name


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_every_time_in_a_wheel_and_a_source_is_the_one_that_was_given(built: Path) -> None:
    """None is that of the machine."""
    for wheel in built.glob("*.whl"):
        with zipfile.ZipFile(wheel) as opened:
            assert {each.date_time for each in opened.infolist()} == {(2023, 11, 14, 22, 13, 20)}
    for source in built.glob("*.tar.gz"):
        with tarfile.open(source) as opened:
            assert {int(each.mtime) for each in opened.getmembers()} == {int(EPOCH)}


def test_the_two_wheels_share_no_file(built: Path) -> None:
    """They can be installed together: the worker's has no client, the client's nothing else."""
    names: dict[str, set[str]] = {}
    for wheel in built.glob("*.whl"):
        with zipfile.ZipFile(wheel) as opened:
            names[wheel.name.split("-")[0]] = set(opened.namelist())
    client, worker = names["standfast_client"], names["standfast"]
    assert not client & worker
    assert {name.rpartition("/")[0].split("/")[0] for name in client} == {
        "standfast",
        "standfast_client-0.1.0.dist-info",
    }
    assert not [name for name in worker if "client/" in name]


def test_the_licences_of_both_are_the_same() -> None:
    """The client's folder has a copy, since a distribution has its own."""
    ours, theirs = ROOT / "LICENSE", ROOT / "processor" / "client" / "LICENSE"
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_folder_with_something_in_it_is_not_built_into(tmp_path: Path) -> None:
    """What was built before would be signed along."""
    (tmp_path / "old.whl").touch()
    refused = release("build", tmp_path)
    assert (refused.returncode, refused.stderr) == (2, f"{tmp_path}: not empty\n")


def test_without_a_commit_the_time_must_be_given(tmp_path: Path) -> None:
    """A time of the machine is never taken."""
    (tmp_path / "deploy" / "release").mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "release" / "build.py", tmp_path / "deploy" / "release")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    refused = release("build", tmp_path / "dist", root=tmp_path, SOURCE_DATE_EPOCH="")
    assert refused.returncode == 2
    assert "set SOURCE_DATE_EPOCH" in refused.stderr
