"""The scans of the sources are clean or explained, and see what they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

import deploy.release.findings as scans
from deploy.release.findings import Finding, compared, secrets
from tests.release.commands import release


def test_the_sources_are_clean_or_explained() -> None:
    """What bandit and the scan for secrets find is what `explained.toml` says."""
    done = release("findings", "bandit", "secrets")
    assert (done.returncode, done.stderr) == (0, "")


PLANTED = [
    ("private key", "-----BEGIN {} KEY-----".format("PRIVATE")),
    ("private key", "-----BEGIN OPENSSH {} KEY-----".format("PRIVATE")),
    ("cloud key", "AKIA" + "ABCDEFGHIJKLMNOP"),
    ("service token", "ghp_" + "a1" * 18),
    ("service token", "sk-" + "proj-0123456789abcdef"),
    ("bearer token", "sf_" + "a" * 43),
    (
        "web token",
        ".".join(["eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + "zdWIiOiIxMjM0In0", "c2lnbmF0dXJl"]),
    ),
    ("address with a password", "postgres://me:{}@db/x".format("hunter22")),
    ("password", 'DB_PASSWORD = "{}"'.format("correct-horse")),
    ("password", '"api_key": "{}"'.format("0123456789")),
]


@pytest.mark.parametrize(("kind", "line"), PLANTED)
def test_a_planted_secret_is_found(
    kind: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its place, and without being repeated."""
    (tmp_path / "settings.py").write_text(f"first line\n{line}\n")
    monkeypatch.setattr(scans, "ROOT", tmp_path)
    found = list(secrets(["settings.py"]))
    assert Finding(kind, "settings.py", 2, "looks like one") in found
    assert line not in repr(found)


@pytest.mark.parametrize(
    "line",
    [
        "token = os.environ['STANDFAST_TOKEN']",
        'password = "{password}"',
        "sf_short",
        "https://standfast.example:8080/path@x",
        "secret: Token",
    ],
)
def test_what_only_talks_about_secrets_is_none(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, placeholders and addresses with a port."""
    (tmp_path / "settings.py").write_text(line)
    monkeypatch.setattr(scans, "ROOT", tmp_path)
    assert list(secrets(["settings.py"])) == []


FOUND = [Finding("B608", "a.py", 3, "query"), Finding("B608", "a.py", 9, "query")]


@pytest.mark.parametrize(
    ("explained", "lines"),
    [
        ([{"kind": "B608", "file": "a.py", "count": 2}], []),
        ([{"kind": "B608", "file": "*", "count": 0}], []),
        ([], ["a.py:3: B608: query", "a.py:9: B608: query"]),
        (
            [{"kind": "B608", "file": "a.py", "count": 1}],
            ["a.py:3: B608: query", "a.py:9: B608: query"],
        ),
        (
            [{"kind": "B608", "file": "*", "count": 0}, {"kind": "B1", "file": "a.py", "count": 1}],
            ["explained.toml: B1 in a.py is explained and not there"],
        ),
    ],
)
def test_an_explanation_covers_what_it_counts(
    explained: list[dict[str, object]], lines: list[str]
) -> None:
    """One finding more is told, and so is an explanation that has outlived its finding."""
    assert list(compared(FOUND, explained)) == lines
