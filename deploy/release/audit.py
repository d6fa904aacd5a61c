"""Looks for known vulnerabilities in the packages of a lock.

    audit.py LOCK...                asks the service that pip-audit asks
    audit.py LOCK... --db FILE      compares with a dump of OSV's advisories, a zip or a folder

Status 0 means that there was a database and nothing of the locks stands in it. A database that
cannot be reached or read is status 2: nothing was looked up, and it says so.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

PIP_AUDIT = Path(__file__).resolve().parents[2] / "build" / "audit" / "venv" / "bin" / "pip-audit"
SECONDS_MAX = 300
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
_FOUND = 1


class Advisory(NamedTuple):
    """What one advisory says of one package."""

    id: str
    versions: frozenset[str]
    ranges: tuple[tuple[dict[str, str], ...], ...]


class DatabaseError(Exception):
    """The database cannot be reached or read; one line."""


def main(arguments: list[str]) -> int:
    """Status 0: looked up and nothing found; 1: found; 2: not looked up."""
    parser = argparse.ArgumentParser(prog="audit.py", description="Known vulnerabilities.")
    parser.add_argument("lock", nargs="+", type=Path)
    parser.add_argument("--db", type=Path)
    asked = parser.parse_args(arguments)
    try:
        if asked.db is None:
            for lock in asked.lock:
                if (status := ask_service(lock)) != 0:
                    return status
            return 0
        advisories = read_database(asked.db)
        found = [line for lock in asked.lock for line in affected(lock, advisories)]
    except DatabaseError as error:
        print(f"not audited: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"not audited: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    for line in found:
        print(line)
    count = sum(map(len, advisories.values()))
    print(f"{len(found)} found; the database has {count} advisories about Python packages")
    return _FOUND if found else 0


def ask_service(lock: Path) -> int:
    """What pip-audit finds: 0 nothing, 1 something. Raises DatabaseError."""
    if not PIP_AUDIT.exists():
        raise DatabaseError(f"{PIP_AUDIT} is not there; make audit installs it")
    options = ["--require-hashes", "--disable-pip", "--no-deps", "--progress-spinner", "off"]
    asked = [str(PIP_AUDIT), *options, "--format", "json", "--timeout", "15", "-r", str(lock)]
    try:
        ran = subprocess.run(
            asked, capture_output=True, text=True, check=False, timeout=SECONDS_MAX
        )
        told = json.loads(ran.stdout)["dependencies"]
        if all("skip_reason" in each for each in told):
            raise KeyError("vulns")
    except (json.JSONDecodeError, KeyError, subprocess.TimeoutExpired) as silent:
        raise DatabaseError(
            "no database of vulnerabilities can be reached from here; "
            "name a dump of one: make audit DB=FILE"
        ) from silent
    skipped = [each["name"] for each in told if "skip_reason" in each]
    if skipped:
        raise DatabaseError(f"{lock}: {len(skipped)} packages not looked up, as {skipped[0]}")
    found = [(each, vulnerable) for each in told for vulnerable in each["vulns"]]
    for each, vulnerable in found:
        print(f"{lock}: {each['name']} {each['version']}: {vulnerable['id']}")
    print(f"{lock}: {len(found)} found in {len(told)} packages")
    return _FOUND if found else 0


def read_database(path: Path) -> Mapping[str, list[Advisory]]:
    """Every advisory about a Python package, by its name. Raises DatabaseError."""
    advisories: defaultdict[str, list[Advisory]] = defaultdict(list)
    for name, content in _documents(path):
        try:
            told = json.loads(content)
            if "withdrawn" in told:
                continue
            for each in told.get("affected", ()):
                if each.get("package", {}).get("ecosystem") == "PyPI":
                    package = canonicalize_name(each["package"]["name"])
                    advisories[package].append(_advisory(str(told["id"]), each))
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise DatabaseError(f"{path}: {name}: not an advisory") from wrong
    if not advisories:
        raise DatabaseError(f"{path}: no advisory about a Python package")
    return advisories


def _documents(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for file in sorted(path.rglob("*.json")):
            yield file.name, file.read_bytes()
        return
    try:
        with zipfile.ZipFile(path) as opened:
            for name in opened.namelist():
                if name.endswith(".json"):
                    yield name, opened.read(name)
    except zipfile.BadZipFile as wrong:
        raise DatabaseError(f"{path}: neither a folder nor a zip") from wrong


def _advisory(id_: str, told: dict[str, Any]) -> Advisory:
    ranges = tuple(
        tuple(each["events"]) for each in told.get("ranges", ()) if each["type"] == "ECOSYSTEM"
    )
    return Advisory(id_, frozenset(told.get("versions", ())), ranges)


def affected(lock: Path, advisories: Mapping[str, list[Advisory]]) -> Iterator[str]:
    """One line for each pin of a lock and each advisory that is about it."""
    pins = _PIN.findall(lock.read_text())
    if not pins:
        raise DatabaseError(f"{lock}: no pinned package")
    for name, version in pins:
        for advisory in advisories.get(canonicalize_name(name), ()):
            if is_affected(version, advisory):
                yield f"{lock}: {name} {version}: {advisory.id}"


def is_affected(version: str, advisory: Advisory) -> bool:
    """Whether the version is listed, or lies in a range: introduced, and not fixed before it."""
    return version in advisory.versions or any(
        _is_within(Version(version), events) for events in advisory.ranges
    )


def _is_within(version: Version, events: tuple[dict[str, str], ...]) -> bool:
    """The events in the order of their versions; the last one at or before ours decides."""
    inside = False
    for event in sorted(events, key=lambda each: _version(next(iter(each.values())))):
        ((kind, at),) = event.items()
        if kind == "introduced" and version >= _version(at):
            inside = True
        elif (kind == "fixed" and version >= _version(at)) or (
            kind == "last_affected" and version > _version(at)
        ):
            inside = False
    return inside


def _version(written: str) -> Version:
    """Zero stands for before everything; what is no version of Python's counts as that too."""
    try:
        return Version(written)
    except InvalidVersion:
        return Version("0.dev0")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
