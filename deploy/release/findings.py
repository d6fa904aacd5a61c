"""Scans the sources for what a reviewer would stop at, and compares with what is explained.

`findings.py bandit` runs bandit; `findings.py secrets` looks for keys and passwords in every file
that belongs to the project. `explained.toml` says for each kind of finding in each file how many
there are and why; one more is an error, and so is an explanation of what is not there any more.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
EXPLAINED = Path(__file__).with_name("explained.toml")
SOURCES = ("schemas", "processor", "replay", "deploy")

SECRETS = {
    "private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "cloud key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{35}\b"),
    "service token": re.compile(
        r"\b(?:gh[pousr]_\w{36,}|github_pat_\w{50,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,}"
        r"|npm_\w{36}|pypi-[\w-]{50,}|sk-[A-Za-z0-9][\w-]{14,})"
    ),
    "bearer token": re.compile(r"\bsf_[A-Za-z0-9_-]{43}\b"),
    "web token": re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    "address with a password": re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@'\"{}]+:[^\s/@'\"{}]+@"),
    "password": re.compile(
        r"(?i)\b\w*(?:passw(?:or)?d|secret|api_?key|access_?key|private_?key)\w*['\"]?\s*[:=]\s*"
        r"['\"][^'\"\s{}$<>.]{8,}['\"]"
    ),
}


class Finding(NamedTuple):
    """One place and what is wrong with it; `text` never repeats a secret."""

    kind: str
    file: str
    line: int
    text: str


def bandit() -> Iterator[Finding]:
    """What bandit finds in the sources that ship or build."""
    asked = [sys.executable, "-m", "bandit", "-q", "-r", *SOURCES, "-f", "json"]
    ran = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1):
        raise SystemExit(f"bandit failed: {ran.stderr.strip().splitlines()[-1:]}")
    told = json.loads(ran.stdout)
    for error in told["errors"]:
        yield Finding("unread", str(error["filename"]), 0, str(error["reason"]))
    for each in told["results"]:
        file = Path(each["filename"]).as_posix()
        yield Finding(each["test_id"], file, each["line_number"], each["issue_text"])


def secrets(files: list[str] | None = None) -> Iterator[Finding]:
    """What looks like a secret, in every file that git has or would take."""
    for file in sorted(_tracked() if files is None else files):
        path = ROOT / file
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
            for kind, pattern in SECRETS.items():
                if pattern.search(line):
                    yield Finding(kind, file, number, "looks like one")


def _tracked() -> list[str]:
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return listed.rstrip("\0").split("\0")


def compared(findings: list[Finding], explained: list[dict[str, object]]) -> Iterator[str]:
    """One line for each finding without explanation, and for each explanation without finding."""
    counts = Counter((each.kind, each.file) for each in findings)
    known = {(str(row["kind"]), str(row["file"])): row["count"] for row in explained}
    everywhere = {kind for kind, file in known if file == "*"}
    for each in findings:
        place = (each.kind, each.file)
        if each.kind not in everywhere and counts[place] != known.get(place):
            yield f"{each.file}:{each.line}: {each.kind}: {each.text}"
    for kind, file in known.keys() - counts.keys():
        if file != "*" or kind not in {each.kind for each in findings}:
            yield f"{EXPLAINED.name}: {kind} in {file} is explained and not there"


SCANS = {"bandit": bandit, "secrets": secrets}


def main(arguments: list[str]) -> int:
    """Status 1 where something is not explained."""
    if not arguments or not set(arguments) <= SCANS.keys():
        print(f"usage: findings.py {' | '.join(SCANS)}", file=sys.stderr)
        return 2
    explained = tomllib.loads(EXPLAINED.read_text())
    lines = [line for name in arguments for line in compared(list(SCANS[name]()), explained[name])]
    for line in lines:
        print(line, file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
