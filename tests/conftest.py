"""What every test shares: Hypothesis profiles, the public data, and what a run leaves out.

A test that cannot or should not run is left out by name and reason at the end of the output; it is
never counted as skipped. On a build server (`CI` set) the data, Apache Kafka, a browser and the
tools that check image and chart, and the client's frameworks must be there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.browser.software import NEED_BROWSER
from tests.browser.software import missing as browser_is_missing
from tests.client.software import NEED_HOOKS
from tests.client.software import missing as hooks_are_missing
from tests.deploy.software import NEED_TOOLS
from tests.deploy.software import missing as tools_are_missing
from tests.kafka.fetch import on_build_server
from tests.kafka.software import KEPT_LOGS, NEED_KAFKA
from tests.kafka.software import missing as kafka_is_missing

pytest_plugins = ["tests.kafka.fixtures"]

ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = Path(os.environ.get("STANDFAST_SHARED_DATA", ROOT.parent / "shared" / "data"))

settings.register_profile(
    "ci", derandomize=True, database=None, deadline=None, max_examples=100, print_blob=True
)
settings.register_profile(
    "thorough", settings.get_profile("ci"), derandomize=False, max_examples=2_000
)
settings.load_profile("ci")


@dataclass(frozen=True)
class LeftOut:
    """A group of tests that a run leaves out, and why."""

    marker: str
    reason: str


LEFT_OUT: pytest.StashKey[list[tuple[LeftOut, int]]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options that take in what a plain run leaves out."""
    parser.addoption("--thorough", action="store_true", help="also run the tests that take long")
    parser.addoption("--bench", action="store_true", help="also run the measurements")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run on a build server without what some group of tests needs."""
    if not on_build_server():
        return
    if not _data_is_there():
        raise pytest.UsageError(
            f"CI is set, but there is no benchmark data at {SHARED_DATA}; CI must not pass "
            "without the tests that need it"
        )
    for reason in _missing().values():
        if reason is not None:
            raise pytest.UsageError(
                f"CI is set, but {reason}; CI must not pass without the tests that need it"
            )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out the groups that this run leaves out, remember how many, and begin with Kafka.

    Those tests wait for brokers most of the time: in the middle of the others they cost little, at
    the end the processes that have nothing left to do wait for the one that has them.
    """
    counts: list[tuple[LeftOut, int]] = []
    for group in _groups_left_out(config):
        out = [item for item in items if _belongs(item, group.marker)]
        if out:
            counts.append((group, len(out)))
            config.hook.pytest_deselected(items=out)
            items[:] = [item for item in items if not _belongs(item, group.marker)]
    config.stash[LEFT_OUT] = counts
    items.sort(key=lambda item: not _belongs(item, "kafka"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a process of several that share the tests: tell the first what was left out."""
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        counts = session.config.stash.get(LEFT_OUT, [])
        told["left_out"] = [(group.marker, group.reason, count) for group, count in counts]
        told["kept_logs"] = session.config.stash.get(KEPT_LOGS, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Such a process has ended; all of them leave out the same."""
    told = getattr(node, "workeroutput", {})
    counts = [
        (LeftOut(marker, reason), count) for marker, reason, count in told.get("left_out", ())
    ]
    node.config.stash[LEFT_OUT] = counts
    node.config.stash.setdefault(KEPT_LOGS, []).extend(told.get("kept_logs", ()))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end what was left out and why."""
    counts = terminalreporter.config.stash.get(LEFT_OUT, [])
    terminalreporter.section("left out")
    for group, count in counts:
        terminalreporter.line(f"{count} marked '{group.marker}': {group.reason}")
    if not counts:
        terminalreporter.line("nothing")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the public benchmarks; a test that uses it belongs to `data`."""
    return SHARED_DATA


def _data_is_there() -> bool:
    return SHARED_DATA.is_dir() and any(SHARED_DATA.iterdir())


def _missing() -> dict[str, str | None]:
    """By group of tests: why what it needs is not here, or None if it is."""
    return {
        "kafka": kafka_is_missing(),
        "browser": browser_is_missing(),
        "deploy": tools_are_missing(),
        "hooks": hooks_are_missing(),
    }


@cache
def _can_mount() -> bool:
    """Whether a small disk can be had, which only the process that asks for it sees."""
    program = shutil.which("unshare")
    if program is None:
        return False
    mount = [program, "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(mount, capture_output=True, check=False, timeout=60).returncode == 0


def _groups_left_out(config: pytest.Config) -> Iterator[LeftOut]:
    if not _data_is_there():
        yield LeftOut("data", f"there is no benchmark data at {SHARED_DATA}")
    for marker, reason in _missing().items():
        if reason is not None:
            yield LeftOut(marker, reason)
    if shutil.which("openssl") is None:
        yield LeftOut("openssl", "there is no program of that name")
    if not _can_mount():
        yield LeftOut("mounts", "this user may not mount anything here; other tests limit files")
    if not config.getoption("--bench"):
        yield LeftOut("bench", "measurements have their own command, make bench")
    if not config.getoption("--thorough"):
        yield LeftOut("thorough", "they take long; make test-full runs them")


_FIXTURES_OF = {
    "data": frozenset({"shared_data"}),
    "kafka": NEED_KAFKA,
    "browser": NEED_BROWSER,
    "deploy": NEED_TOOLS,
    "hooks": NEED_HOOKS,
}
"""Using one of these fixtures says the same as the mark."""


def _belongs(item: pytest.Item, marker: str) -> bool:
    used = _FIXTURES_OF.get(marker, frozenset()).intersection(getattr(item, "fixturenames", ()))
    return bool(used) or item.get_closest_marker(marker) is not None
