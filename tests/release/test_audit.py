"""Known vulnerabilities: an advisory hits what it is about; nothing passes without a database."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from deploy.release.audit import Advisory, is_affected
from tests.release.commands import release

ABOUT = {"package": {"ecosystem": "PyPI", "name": "Made_Up"}}


def advisory(**affected: Any) -> dict[str, Any]:
    """One advisory in OSV's form."""
    return {"id": "OSV-1", "affected": [{**ABOUT, **affected}]}


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock with one package."""
    path = tmp_path / "some.lock"
    path.write_text("made-up==1.5 \\\n    --hash=sha256:00\n")
    return path


def database(folder: Path, *advisories: dict[str, Any]) -> Path:
    """A dump as OSV publishes it: a zip of one file for each."""
    path = folder / "all.zip"
    with zipfile.ZipFile(path, "w") as opened:
        for number, each in enumerate(advisories):
            opened.writestr(f"OSV-{number}.json", json.dumps(each))
    return path


def audit(lock: Path, db: Path) -> tuple[int, str]:
    """The status and what is said."""
    done = release("audit", lock, "--db", db)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("events", "versions"),
    [
        ([{"introduced": "0"}, {"fixed": "1.5"}], "0.1 1.4.9 1.5rc1 | 1.5 2"),
        ([{"introduced": "1.2"}, {"last_affected": "1.5"}], "1.2 1.5 | 1.1 1.5.1"),
        (
            [{"fixed": "3.1"}, {"introduced": "3"}, {"introduced": "0"}, {"fixed": "1"}],
            "0.9 3 3.0.5 | 1 2 3.1",
        ),
        ([{"introduced": "0"}], "0.0.1 9 | "),
    ],
)
def test_a_range_holds_what_lies_between_its_events(
    events: list[dict[str, str]], versions: str
) -> None:
    """From an introduction on, up to the fix before it, in whichever order they are listed."""
    hit, missed = versions.split("|")
    told = Advisory("OSV-1", frozenset(), (tuple(events),))
    assert all(is_affected(version, told) for version in hit.split())
    assert not any(is_affected(version, told) for version in missed.split())


def test_a_package_with_an_advisory_is_found(lock: Path, tmp_path: Path) -> None:
    """By a range or a listed version, under whichever spelling of its name; status 1."""
    events = [{"introduced": "1"}, {"fixed": "2"}]
    for affected in ({"ranges": [{"type": "ECOSYSTEM", "events": events}]}, {"versions": ["1.5"]}):
        status, said = audit(lock, database(tmp_path, advisory(**affected)))
        assert status == 1
        assert said.startswith(f"{lock}: made-up 1.5: OSV-1\n1 found")


@pytest.mark.parametrize(
    "other",
    [
        advisory(versions=["1.4"]),
        {
            **advisory(versions=["1.5"]),
            "id": "W",
            "affected": [
                {"package": {"ecosystem": "npm", "name": "made-up"}, "versions": ["1.5"]},
                {**ABOUT},
            ],
        },
    ],
)
def test_a_package_without_one_is_not_found(
    lock: Path, tmp_path: Path, other: dict[str, Any]
) -> None:
    """Another version, or another registry's package of that name; status 0 and a count."""
    assert audit(lock, database(tmp_path, other)) == (
        0,
        "0 found; the database has 1 advisories about Python packages\n",
    )


def test_a_database_without_advisories_is_none(lock: Path, tmp_path: Path) -> None:
    """An empty one, one of another registry, a file that is none and one that is not there."""
    withdrawn = {**advisory(versions=["1.5"]), "withdrawn": "2026-01-01T00:00:00Z"}
    for path in (database(tmp_path, withdrawn), tmp_path / "no.zip", lock, tmp_path / "none"):
        (tmp_path / "none").mkdir(exist_ok=True)
        status, said = audit(lock, path)
        assert status == 2
        assert said.startswith("not audited: ")


def test_an_advisory_that_cannot_be_read_is_named(lock: Path, tmp_path: Path) -> None:
    """It might be about us, so the audit does not pass."""
    status, said = audit(lock, database(tmp_path, {"affected": "everything"}))
    assert (status, said) == (
        2,
        f"not audited: {tmp_path / 'all.zip'}: OSV-0.json: not an advisory\n",
    )


def test_a_lock_without_pins_is_not_audited(tmp_path: Path) -> None:
    """Nothing looked up is not nothing found."""
    (tmp_path / "empty.lock").touch()
    status, said = audit(tmp_path / "empty.lock", database(tmp_path, advisory(versions=["1.5"])))
    assert (status, said) == (2, f"not audited: {tmp_path / 'empty.lock'}: no pinned package\n")
